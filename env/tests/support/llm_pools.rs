//! Pools of replicas played step by step with plain vectors: the oracle of `model::serving::llm::LlmPools`.

use goodput_env::model::serving::llm::{KvLink, LlmOutcome, LlmRequest, ReplicaPool, ServedTokens};

/// A request on a replica.
#[derive(Clone, Copy)]
struct Held {
    id: usize,
    request: LlmRequest,
    /// Tokens to compute before the next token is made.
    prompt: u32,
    /// Tokens in memory.
    computed: u32,
    made: u32,
    first_ps: u64,
    preemptions: u32,
    admitted: u64,
    /// End of the transfer; 0 where none is needed.
    there_ps: u64,
}

impl Held {
    fn decodes(&self, now: u64) -> bool {
        self.computed >= self.prompt && self.there_ps <= now
    }

    fn outstanding(&self) -> u64 {
        u64::from(self.request.input) + u64::from(self.request.output)
    }
}

/// A replica of one of both pools.
struct Naive<'a> {
    pool: &'a ReplicaPool,
    waiting: Vec<Held>,
    running: Vec<Held>,
    /// Prompts that are complete here, and the moment at which their memory is free, where it is known.
    kept: Vec<(Held, Option<u64>)>,
    busy_until: u64,
    admissions: u64,
}

/// Requests that are complete at the end of a step, with that end.
type Ended = Vec<(Held, u64)>;

impl Naive<'_> {
    fn blocks(&self, tokens: u32) -> u64 {
        u64::from(tokens.div_ceil(self.pool.limits.block))
    }

    fn total(&self) -> u64 {
        self.pool.limits.kv_tokens / u64::from(self.pool.limits.block)
    }

    fn outstanding(&self) -> u64 {
        self.waiting.iter().chain(&self.running).map(Held::outstanding).sum()
    }

    /// Blocks that are taken, and those that the next step begins.
    fn taken(&self, now: u64) -> u64 {
        let block = self.pool.limits.block;
        let begun = self.running.iter().filter(|one| one.decodes(now) && one.computed.is_multiple_of(block)).count();
        let kept = self.kept.iter().map(|(one, _)| self.blocks(one.request.input));
        let held = |one: &Held| self.blocks(if one.there_ps > 0 { one.computed } else { one.computed.max(one.prompt) });
        kept.chain(self.running.iter().map(held)).sum::<u64>() + begun as u64
    }

    /// Begins a step at `now`, where there is something to do. `link` is that over which requests come.
    fn begin(&mut self, link: Option<KvLink>, now: u64) -> (Ended, Vec<(usize, u64)>) {
        let limits = self.pool.limits;
        let (mut ended, mut moves) = (Vec::new(), Vec::new());
        let mut preempted = false;
        while self.taken(now) > self.total() {
            let order = |one: &&(usize, Held)| (one.1.computed < one.1.prompt, one.1.admitted);
            let there: Vec<(usize, Held)> =
                self.running.iter().copied().enumerate().filter(|(_, one)| one.there_ps <= now).collect();
            let (at, _) = *there.iter().max_by_key(order).expect("a request that holds memory");
            let mut last = self.running.remove(at);
            last.preemptions += 1;
            (last.prompt, last.computed, last.there_ps) = (last.request.input + last.made, 0, 0);
            self.waiting.insert(0, last);
            preempted = true;
        }
        let mut left = limits.tokens - self.running.iter().filter(|one| one.decodes(now)).count() as u32;
        let mut prompts: Vec<(usize, u32, u32)> = Vec::new();
        for one in self.running.iter().filter(|one| one.computed < one.prompt) {
            let size = left.min(one.prompt - one.computed);
            left -= size;
            prompts.push((one.id, one.computed, size));
        }
        while left > 0 && !preempted && self.running.len() < limits.sequences as usize {
            let Some(mut head) = self.waiting.first().copied() else { break };
            if self.taken(now) + self.blocks(head.request.input + head.made) > self.total() {
                break;
            }
            self.waiting.remove(0);
            head.admitted = self.admissions;
            self.admissions += 1;
            match link.filter(|_| head.preemptions == 0) {
                Some(link) => {
                    head.there_ps = now + link.transfer_ps(head.request.input);
                    moves.push((head.id, head.there_ps));
                    left -= u32::from(head.there_ps == now);
                }
                None => {
                    let size = left.min(head.prompt - head.computed);
                    left -= size;
                    prompts.push((head.id, head.computed, size));
                }
            }
            self.running.push(head);
        }
        let decoding: Vec<usize> = self.running.iter().filter(|one| one.decodes(now)).map(|one| one.id).collect();
        let context = self.running.iter().filter(|one| one.decodes(now)).map(|one| u64::from(one.computed) + 1).sum();
        let tokens = prompts.iter().map(|(_, _, size)| size).sum::<u32>();
        if tokens == 0 && decoding.is_empty() {
            return (ended, moves);
        }
        let pairs =
            prompts.iter().map(|&(_, before, size)| u64::from(size) * (2 * u64::from(before) + u64::from(size)));
        let end = now + self.pool.step.mixed_ps(decoding.len() as u32, context, tokens, pairs.sum());
        for one in &mut self.running {
            if decoding.contains(&one.id) {
                one.computed += 1;
                one.made += 1;
            } else if let Some((_, _, size)) = prompts.iter().find(|(id, _, _)| *id == one.id) {
                one.computed += size;
                one.made += u32::from(one.computed == one.prompt);
            }
        }
        // A prefill replica makes the first token only.
        let last = |one: &Held| one.made == if link.is_some() { one.request.output } else { 1 };
        ended.extend(self.running.iter().filter(|one| last(one)).map(|one| (*one, end)));
        self.running.retain(|one| !last(one));
        self.busy_until = end;
        (ended, moves)
    }
}

fn least<'b, 'a>(replicas: &'b mut [Naive<'a>]) -> &'b mut Naive<'a> {
    replicas.iter_mut().min_by_key(|one| one.outstanding()).expect("a replica")
}

/// Plays requests in order of arrival on both pools, an event at a time.
pub fn replay(prefill: &ReplicaPool, decode: &ReplicaPool, link: KvLink, requests: &[LlmRequest]) -> Vec<LlmOutcome> {
    let idle = |pool| Naive { pool, waiting: vec![], running: vec![], kept: vec![], busy_until: 0, admissions: 0 };
    let mut first: Vec<Naive<'_>> = (0..prefill.count).map(|_| idle(prefill)).collect();
    let mut further: Vec<Naive<'_>> = (0..decode.count).map(|_| idle(decode)).collect();
    let room = |pool: &ReplicaPool| pool.limits.kv_tokens / u64::from(pool.limits.block) * u64::from(pool.limits.block);
    let mut outcomes = vec![LlmOutcome::TooLong; requests.len()];
    let mut arriving = requests.iter().enumerate().peekable();
    let mut made: Ended = Vec::new();
    let deadline = |one: &Held| one.request.arrival_ps.saturating_add(prefill.limits.timeout_ps);
    let mut now = 0;
    loop {
        while let Some((id, &request)) = arriving.next_if(|(_, request)| request.arrival_ps <= now) {
            let (prompt, all) = (u64::from(request.input) + 1, u64::from(request.input) + u64::from(request.output));
            if prompt <= room(prefill) && all <= room(decode) {
                let (prompt, computed) = (request.input, request.cached);
                let request = LlmRequest { output: 1, ..request };
                let held = Held {
                    id,
                    request,
                    prompt,
                    computed,
                    made: 0,
                    first_ps: 0,
                    preemptions: 0,
                    admitted: 0,
                    there_ps: 0,
                };
                least(&mut first).waiting.push(held);
            }
        }
        made.sort_by_key(|(one, end)| (*end, one.id));
        for (one, end) in made.extract_if(.., |(_, end)| *end <= now) {
            let request = requests[one.id];
            let token = Held { request, computed: request.input, prompt: request.input, first_ps: end, ..one };
            if request.output > 1 {
                least(&mut further).waiting.push(token);
            } else {
                let (arrival_ps, first_ps, last_ps) = (request.arrival_ps, end, end);
                let served = ServedTokens { arrival_ps, first_ps, last_ps, output: 1, preemptions: 0 };
                outcomes[one.id] = LlmOutcome::Served(served);
            }
        }
        for replica in further.iter_mut().filter(|one| one.busy_until <= now) {
            let (ended, moves) = replica.begin(Some(link), now);
            for (Held { id, request, first_ps, preemptions, .. }, last_ps) in ended {
                let LlmRequest { arrival_ps, output, .. } = request;
                outcomes[id] = LlmOutcome::Served(ServedTokens { arrival_ps, first_ps, last_ps, output, preemptions });
            }
            let kept = first.iter_mut().flat_map(|one| &mut one.kept);
            for (one, until) in kept {
                *until = until.or(moves.iter().find(|(id, _)| *id == one.id).map(|(_, end)| *end));
            }
        }
        for replica in &mut first {
            replica.kept.retain(|(_, until)| until.is_none_or(|until| until > now));
            if replica.busy_until > now {
                continue;
            }
            while let Some(head) = replica.waiting.first().filter(|head| now > deadline(head)) {
                outcomes[head.id] = LlmOutcome::TimedOut;
                replica.waiting.remove(0);
            }
            let (ended, _) = replica.begin(None, now);
            for (one, end) in ended {
                replica.kept.push((one, (requests[one.id].output == 1).then_some(end)));
                made.push((one, end));
            }
        }
        let both = || first.iter().chain(&further);
        let times = both().map(|one| one.busy_until);
        let times = times.chain(both().flat_map(|one| &one.running).map(|one| one.there_ps));
        let times = times.chain(first.iter().flat_map(|one| &one.kept).filter_map(|(_, until)| *until));
        let times = times.chain(first.iter().filter_map(|one| Some(deadline(one.waiting.first()?).saturating_add(1))));
        let times = times.chain(arriving.peek().map(|(_, request)| request.arrival_ps));
        let Some(next) = times.filter(|&at| at > now && at < u64::MAX).min() else { return outcomes };
        now = next;
    }
}
