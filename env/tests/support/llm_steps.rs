//! A replica of a language model played step by step with plain vectors: the oracle of
//! `model::serving::llm::LlmReplica`.

use goodput_env::model::serving::llm::{BatchTime, LlmOutcome, LlmRequest, ReplicaLimits, ServedTokens};

/// A request that holds memory.
#[derive(Clone, Copy)]
struct Running {
    id: usize,
    request: LlmRequest,
    /// Tokens to compute before the next token is made.
    prompt: u32,
    /// Tokens in memory.
    computed: u32,
    made: u32,
    first_ps: Option<u64>,
    preemptions: u32,
}

impl Running {
    fn decodes(&self) -> bool {
        self.computed >= self.prompt
    }

    /// Blocks that the request holds: those of a whole prompt from the start.
    fn blocks(&self, block: u32) -> u64 {
        u64::from(self.computed.max(self.prompt).div_ceil(block))
    }
}

/// Plays requests in order of arrival on one replica, a step at a time.
pub fn replay(limits: ReplicaLimits, step: &BatchTime, requests: &[LlmRequest]) -> Vec<LlmOutcome> {
    let total = limits.kv_tokens / u64::from(limits.block);
    let fits = |request: &LlmRequest| u64::from(request.input + request.output) <= total * u64::from(limits.block);
    let mut outcomes = vec![LlmOutcome::TooLong; requests.len()];
    let fresh = |(id, request): (usize, &LlmRequest)| Running {
        id,
        request: *request,
        prompt: request.input,
        computed: request.cached,
        made: 0,
        first_ps: None,
        preemptions: 0,
    };
    let mut waiting: Vec<Running> =
        requests.iter().enumerate().filter(|(_, request)| fits(request)).map(fresh).collect();
    let mut running: Vec<Running> = Vec::new();
    let mut now = 0;
    while !(waiting.is_empty() && running.is_empty()) {
        if running.is_empty() {
            now = now.max(waiting[0].request.arrival_ps);
        }
        while waiting.first().is_some_and(|head| {
            head.first_ps.is_none() && now > head.request.arrival_ps.saturating_add(limits.timeout_ps)
        }) {
            outcomes[waiting.remove(0).id] = LlmOutcome::TimedOut;
        }
        let mut preempted = false;
        let begun = |running: &[Running]| {
            running.iter().filter(|one| one.decodes() && one.computed.is_multiple_of(limits.block)).count() as u64
        };
        let held = |running: &[Running]| running.iter().map(|one| one.blocks(limits.block)).sum::<u64>();
        while held(&running) + begun(&running) > total {
            let mut last = running.pop().expect("a request that holds memory");
            last.preemptions += 1;
            last.prompt = last.request.input + last.made;
            last.computed = 0;
            waiting.insert(0, last);
            preempted = true;
        }
        let sequences = running.iter().filter(|one| one.decodes()).count() as u32;
        let context: u64 = running.iter().filter(|one| one.decodes()).map(|one| u64::from(one.computed) + 1).sum();
        let mut budget = limits.tokens - sequences;
        let (mut tokens, mut pairs2) = (0, 0);
        let decoding: Vec<usize> = running.iter().filter(|one| one.decodes()).map(|one| one.id).collect();
        let mut chunk = |one: &mut Running| {
            let size = budget.min(one.prompt - one.computed);
            pairs2 += u64::from(size) * (2 * u64::from(one.computed) + u64::from(size));
            one.computed += size;
            tokens += size;
            budget -= size;
            budget
        };
        let mut left = u32::MAX;
        for one in running.iter_mut().filter(|one| !one.decodes()) {
            left = chunk(one);
        }
        let next = running
            .iter()
            .filter(|one| decoding.contains(&one.id) && one.computed.is_multiple_of(limits.block))
            .count() as u64;
        while left > 0 && !preempted && running.len() < limits.sequences as usize {
            let Some(mut head) = waiting.first().copied().filter(|head| head.request.arrival_ps <= now) else { break };
            if held(&running) + next + head.blocks(limits.block) > total || limits.tokens == sequences {
                break;
            }
            waiting.remove(0);
            left = chunk(&mut head);
            running.push(head);
        }
        if tokens == 0 && sequences == 0 {
            continue;
        }
        now += step.mixed_ps(sequences, context, tokens, pairs2);
        for one in &mut running {
            if decoding.contains(&one.id) {
                one.computed += 1;
                one.made += 1;
            } else if one.decodes() {
                one.made += 1;
                one.first_ps.get_or_insert(now);
            }
        }
        running.retain(|one| {
            if one.made < one.request.output {
                return true;
            }
            let LlmRequest { arrival_ps, output, .. } = one.request;
            let first_ps = one.first_ps.expect("a first token before the last");
            let preemptions = one.preemptions;
            outcomes[one.id] =
                LlmOutcome::Served(ServedTokens { arrival_ps, first_ps, last_ps: now, output, preemptions });
            false
        });
    }
    outcomes
}
