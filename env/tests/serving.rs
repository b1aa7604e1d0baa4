//! The queueing model of services against a simulation of single requests.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_env::model::serving::queueing::{Latency, Work, occupancy};
use goodput_env::model::serving::{Demand, Fleet};
use goodput_env::seed::{Stream, rng};
use goodput_env::service::{ServingPoint, ServingProfile};
use rand::RngExt;

/// Replicas that take requests from one queue, each the request in front as soon as it works on
/// fewer than it can, the least busy first; work goes on at the speed that the profile gives for
/// the number of requests at hand. Latencies in order of completion.
fn simulate(
    profile: &ServingProfile,
    replicas: usize,
    rates: &[(f64, f64)],
    arrival_cv2: f64,
    work_cv2: f64,
    seed: u64,
) -> Vec<(f64, f64)> {
    let mut rng = rng(seed, Stream::Workload);
    let mut exponential = |mean: f64| -mean * (1.0 - rng.random::<f64>()).ln();
    let mut draw = |cv2: f64| {
        let work = Work::with_cv2(cv2);
        let pick = if exponential(1.0) < -(work.phases[1].0).ln() { 0 } else { 1 };
        work.constant + exponential(work.phases[pick].1)
    };
    let ServingProfile::Answers(profile) = profile else { return Vec::new() };
    let slots = profile.concurrency() as usize;
    // By replica: progress so far, and (progress at which it ends, arrival) of each request.
    let mut busy: Vec<(f64, Vec<(f64, f64)>)> = vec![(0.0, Vec::new()); replicas];
    let mut queue = std::collections::VecDeque::new();
    let (mut now, mut piece, mut until, mut latencies) = (0.0, 0, rates[0].1, Vec::new());
    let mut next = draw(arrival_cv2) / rates[0].0;
    loop {
        // The request that ends first.
        let ends = busy.iter().enumerate().flat_map(|(at, (done, jobs))| {
            let secs = profile.latency_secs(jobs.len() as f64);
            jobs.iter().enumerate().map(move |(job, (end, _))| ((end - done).max(0.0) * secs, at, job))
        });
        let end = ends.min_by(|one, other| one.0.total_cmp(&other.0));
        let ends_at = end.map_or(f64::INFINITY, |end| now + end.0);
        let at = next.min(ends_at);
        for (done, jobs) in &mut busy {
            *done += (at - now) / profile.latency_secs(jobs.len() as f64);
        }
        now = at;
        if next <= ends_at {
            while next >= until {
                piece += 1;
                let Some(&(_, secs)) = rates.get(piece) else { return latencies };
                until += secs;
            }
            queue.push_back((now, draw(work_cv2)));
            next = now + draw(arrival_cv2) / rates[piece].0;
        } else if let Some((_, at, job)) = end {
            let (_, arrival) = busy[at].1.swap_remove(job);
            latencies.push((arrival, now - arrival));
        }
        while let Some(&(arrival, work)) = queue.front() {
            let (done, jobs) = busy.iter_mut().min_by_key(|(_, jobs)| jobs.len()).unwrap();
            if jobs.len() >= slots {
                break;
            }
            jobs.push((*done + work, arrival));
            queue.pop_front();
        }
    }
}

fn profile(points: &[(u32, f64)]) -> ServingProfile {
    let point = |&(concurrency, latency_secs): &(u32, f64)| ServingPoint { concurrency, latency_secs };
    ServingProfile::new(points.iter().map(point).collect()).unwrap()
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

#[test]
fn latency_is_that_of_single_requests() {
    let plain = profile(&[(1, 0.01)]);
    let batch = profile(&[(1, 0.010), (8, 0.024)]);
    // By (bursty arrivals, heavy work): worst error of mean, p99, and the share above twice the mean.
    let mut worst = [[0.0_f64; 3]; 3];
    for (name, profile) in [("plain", &plain), ("batch", &batch)] {
        for replicas in [1, 4, 16] {
            for utilization in [0.3, 0.6, 0.8, 0.9] {
                for (arrival_cv2, work_cv2) in [(1.0, 0.0), (1.0, 0.25), (1.0, 1.0), (1.0, 4.0), (4.0, 1.0)] {
                    let rate = utilization * profile.throughput() * f64::from(replicas);
                    let secs = 200_000.0 / rate;
                    let found = simulate(profile, replicas as usize, &[(rate, secs)], arrival_cv2, work_cv2, 1);
                    let mut found: Vec<f64> = found.into_iter().map(|(_, latency)| latency).collect();
                    found.sort_unstable_by(f64::total_cmp);
                    let demand = Demand { rate, arrival_cv2, work_cv2, slo_secs: 0.1 };
                    let (_, model) = Fleet::of(profile, replicas).latencies(&demand)[0];
                    let mean = found.iter().sum::<f64>() / found.len() as f64;
                    let p99 = quantile(&found, 0.99);
                    let late = found.iter().filter(|&&latency| latency > 2.0 * mean).count() as f64;
                    let errors = [
                        model.mean_secs() / mean - 1.0,
                        model.quantile(0.99) / p99 - 1.0,
                        model.exceeds(2.0 * mean) - late / found.len() as f64,
                    ];
                    println!(
                        "{name} c={replicas:2} rho={utilization} ca2={arrival_cv2} cs2={work_cv2}: mean {:6.1} ms {:+5.1} %, p99 {:6.1} ms {:+5.1} %, late {:+.3}",
                        1e3 * mean,
                        1e2 * errors[0],
                        1e3 * p99,
                        1e2 * errors[1],
                        errors[2]
                    );
                    let class = if arrival_cv2 > 1.0 { 2 } else { usize::from(work_cv2 > 1.0) };
                    for (worst, error) in worst[class].iter_mut().zip(errors) {
                        *worst = worst.max(error.abs());
                    }
                }
            }
        }
    }
    println!("worst: {worst:.3?}");
    // Independent users; the same with work of cv2 4; bursts of cv2 4.
    let most = [[0.05, 0.20, 0.02], [0.06, 0.22, 0.03], [0.20, 0.30, 0.05]];
    let within = worst.iter().flatten().zip(most.iter().flatten()).all(|(worst, most)| worst <= most);
    assert!(within, "{worst:.3?}");
}

/// Replicas that take up to a whole batch of waiting requests when they are idle, and answer them together.
fn simulate_batches(profile: &ServingProfile, replicas: usize, rate: f64, requests: usize) -> Vec<f64> {
    let mut rng = rng(2, Stream::Workload);
    let ServingProfile::Answers(profile) = profile else { return Vec::new() };
    let mut arrivals = Vec::with_capacity(requests);
    let mut now = 0.0;
    for _ in 0..requests {
        now -= (1.0 - rng.random::<f64>()).ln() / rate;
        arrivals.push(now);
    }
    let (mut ready, mut next, mut latencies) = (vec![0.0_f64; replicas], 0, Vec::with_capacity(requests));
    while next < requests {
        let first = ready.iter_mut().min_by(|one, other| one.total_cmp(other)).unwrap();
        let start = first.max(arrivals[next]);
        let waiting = arrivals[next..].iter().take_while(|&&at| at <= start).count();
        let batch = waiting.min(profile.concurrency() as usize);
        *first = start + profile.latency_secs(batch as f64);
        latencies.extend(arrivals[next..next + batch].iter().map(|at| *first - at));
        next += batch;
    }
    latencies
}

#[test]
fn replicas_that_answer_whole_batches_take_longer_by_less_than_half() {
    let batch = profile(&[(1, 0.010), (8, 0.024)]);
    let mut worst = [0.0_f64; 2];
    for replicas in [1, 4, 16] {
        for utilization in [0.3, 0.6, 0.8, 0.9] {
            let rate = utilization * batch.throughput() * f64::from(replicas);
            let mut found = simulate_batches(&batch, replicas as usize, rate, 200_000);
            found.sort_unstable_by(f64::total_cmp);
            let demand = Demand { rate, arrival_cv2: 1.0, work_cv2: 0.0, slo_secs: 0.1 };
            let (_, model) = Fleet::of(&batch, replicas).latencies(&demand)[0];
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            let p99 = quantile(&found, 0.99);
            let errors = [model.mean_secs() / mean - 1.0, model.quantile(0.99) / p99 - 1.0];
            println!(
                "batches c={replicas:2} rho={utilization}: mean {:6.1} ms {:+5.1} %, p99 {:6.1} ms {:+5.1} %",
                1e3 * mean,
                1e2 * errors[0],
                1e3 * p99,
                1e2 * errors[1]
            );
            worst = [worst[0].max(errors[0].abs()), worst[1].max(errors[1].abs())];
        }
    }
    println!("worst: {worst:.3?}");
    assert!(worst[0] < 0.35 && worst[1] < 0.6, "{worst:?}");
}

#[test]
fn a_burst_above_capacity_leaves_a_backlog_that_is_worked_off() {
    let plain = profile(&[(1, 0.01)]);
    let fleet = Fleet::of(&plain, 4);
    // 320 requests a second on replicas for 400; 30 s at 520, which leaves 3600 that take 45 s more.
    let pieces = [(320.0, 60.0), (520.0, 30.0), (320.0, 60.0), (320.0, 60.0)];
    let (mut waiting, mut late) = (0, Vec::new());
    for (rate, secs) in pieces {
        let demand = Demand { rate, arrival_cv2: 1.0, work_cv2: 0.25, slo_secs: 2.0 };
        let requests = (rate * secs * 1e6) as u64;
        let found = fleet.interval(&demand, waiting, requests, secs);
        assert_eq!(found.latencies.iter().sum::<u64>(), requests);
        waiting = found.waiting;
        late.push(found.violated as f64 / 1e6);
    }
    assert_eq!(waiting, 0);
    let mut single = [0.0; 4];
    let seeds = 10;
    for seed in 0..seeds {
        for (at, latency) in simulate(&plain, 4, &pieces, 1.0, 0.25, seed) {
            let piece = [60.0, 90.0, 150.0, f64::INFINITY].iter().position(|&end| at < end).unwrap();
            single[piece] += f64::from(u8::from(latency > 2.0)) / seeds as f64;
        }
    }
    println!("late by piece: model {late:.0?}, single requests {single:.0?}");
    let off = (late.iter().sum::<f64>() / single.iter().sum::<f64>() - 1.0).abs();
    assert!(off < 0.05, "{off}");
}

#[test]
fn erlang_c_by_hand() {
    // One server: the utilisation. Two servers at load 1: 1/3. Ten at load 8: 0.4092 (tables).
    let waits = |servers: u32, load: f64| occupancy(load, servers, load as u32, |_| 1.0).full;
    assert!((waits(1, 0.7) - 0.7).abs() < 1e-12);
    assert!((waits(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
    assert!((waits(10, 8.0) - 0.409_18).abs() < 1e-4);
    assert!(waits(5000, 4900.0) > 0.05 && waits(5000, 100.0) == 0.0);
    // The mean of places taken is the load.
    assert!((occupancy(8.0, 10, 8, |_| 1.0).mean - 8.0).abs() < 1e-9);
}

#[test]
fn tails_are_those_of_known_queues() {
    // M/M/1: latency is exponential with mean s / (1 - rho).
    let (service_secs, rho) = (0.1, 0.6);
    let latency = Latency {
        service_secs,
        work: Work::with_cv2(1.0),
        waits: rho,
        wait_secs: service_secs / (1.0 - rho),
        full_secs: service_secs,
        full_work: Work::with_cv2(1.0),
    };
    for secs in [0.05, 0.2, 1.0] {
        let exact = (-secs * (1.0 - rho) / service_secs).exp();
        assert!((latency.exceeds(secs) - exact).abs() < 1e-9, "{secs}");
    }
    assert!((latency.quantile(0.99) - 0.25 * 100.0_f64.ln()).abs() < 1e-6);
}
