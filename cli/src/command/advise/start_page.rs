//! The predicted start of one job, in sentences and figures.

use goodput_agents::start_time::{end_words, span};
use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, print};
use goodput_env::job::JobRequest;
use goodput_eval::studies::starts::{AskedJob, StartAnswer};
use goodputd::queue_file::QueueFile;
use serde::Serialize;

use super::job::json;
use super::queue::AskedQueue;

/// An answer, with what it is about.
#[derive(Serialize)]
pub struct ToldAnswer<'a> {
    /// Accelerators that the job asks for.
    gpus: u32,
    /// Name of the asked job, where it waits in a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    /// Queue that the job is in; absent for a job on the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<ToldQueue<'a>>,
    #[serde(flatten)]
    answer: &'a StartAnswer,
}

/// Queue of a live cluster.
#[derive(Serialize)]
struct ToldQueue<'a> {
    file: &'a str,
    /// Moment of the queue, milliseconds of the Unix epoch.
    at_ms: i64,
    /// The moment in words, where the clock is a real one.
    #[serde(skip)]
    moment: Option<String>,
    /// Waiting jobs that may not start.
    left_out: usize,
}

impl<'a> ToldAnswer<'a> {
    /// Answer about a new job on the trace.
    pub fn of_trace(answer: &'a StartAnswer, request: &JobRequest) -> Self {
        Self { gpus: request.gpus, job: None, queue: None, answer }
    }

    /// Answer about a job of a queue, or one that is submitted to it.
    pub fn of_queue(answer: &'a StartAnswer, queue: &'a AskedQueue, asked: &'a AskedJob) -> Self {
        let (job, request) = match asked {
            AskedJob::Waits(place) => {
                let request = &queue.seen.jobs[*place].request;
                (Some(request.name.as_str()), request)
            }
            AskedJob::New(request) => (None, request),
        };
        let QueueFile { at_ms, left_out, .. } = queue.file;
        let told = ToldQueue { file: &queue.name, at_ms, moment: queue.file.moment(), left_out };
        Self { gpus: request.gpus, job, queue: Some(told), answer }
    }

    /// Prints the answer.
    pub fn print(&self, output: OutputFormat) -> Result<(), CommandError> {
        let answer = self.answer;
        match output {
            OutputFormat::Table => print(&self.words()),
            OutputFormat::Json => json(self),
            other => {
                let mut rows = Listing::new(&["figure", "value"]);
                let mut add = |name: &str, value: Cell| rows.push(vec![name.into(), value]);
                add("wait_low_secs", Cell::Number(answer.wait.low, 1));
                add("wait_median_secs", Cell::Number(answer.wait.median, 1));
                add("wait_high_secs", Cell::Number(answer.wait.high, 1));
                add("wait_as_stated_secs", Cell::option(answer.as_stated_secs, |secs| Cell::Number(secs, 1)));
                add("calibrated_on", Cell::Whole(answer.calibrated_on as i64));
                rows.print(other)
            }
        }
    }

    /// The answer in sentences.
    fn words(&self) -> String {
        let StartAnswer { wait, running, waiting, .. } = self.answer;
        let gpus = counted(self.gpus.into(), "accelerator");
        let job = self.job.map_or_else(|| format!("A job of {gpus}"), |job| format!("Job {job} ({gpus})"));
        let place = match &self.queue {
            Some(queue) => {
                let at = queue.moment.as_ref().map_or_else(String::new, |moment| format!(" at {moment} UTC"));
                format!("in the queue of {}{at}", queue.file)
            }
            None => format!("submitted at {:.1} h", self.answer.now_hours),
        };
        let mut text = format!(
            "{job} under {}, {place}.\nAt that moment, running: {} on {}; free: {}; waiting: {}, for {}.\n",
            self.answer.policy,
            counted(running.0 as u64, "job"),
            counted(running.1.into(), "accelerator"),
            self.answer.free,
            counted(waiting.0 as u64, "job"),
            counted(waiting.1.into(), "accelerator"),
        );
        if let Some(left_out) = self.queue.as_ref().map(|queue| queue.left_out).filter(|count| *count > 0) {
            let jobs = counted(left_out as u64, "job");
            text += &format!(
                "Left out: {jobs} that a person holds, or that another job, a time, a limit or a partition keeps \
                 waiting.\n"
            );
        }
        text.push('\n');
        if wait.high == 0.0 {
            return text + "It starts at once.\n";
        }
        text + &self.start() + &self.ahead() + &self.room()
    }

    fn start(&self) -> String {
        let StartAnswer { wait, calibrated_on, as_stated_secs, .. } = self.answer;
        let mut text = format!(
            "It starts after {}, and in nine of ten cases after {} to {}.\n",
            span(wait.median),
            span(wait.low),
            span(wait.high)
        );
        text += &match calibrated_on {
            0 => "Too few jobs have waited before to calibrate the interval.\n".to_owned(),
            count => format!(
                "The interval is calibrated on {} of jobs that waited before.\n",
                counted(*count as u64, "prediction")
            ),
        };
        if let Some(secs) = as_stated_secs {
            text += &format!(
                "If every job ran for as long as its user stated and no job came, it would start after {}.\n",
                span(*secs)
            );
        }
        text
    }

    /// Jobs that are likely to start before it.
    fn ahead(&self) -> String {
        let StartAnswer { frees, room, .. } = self.answer;
        let has_room = frees.is_empty() || room.is_some_and(|room| room.jobs == 0);
        let mut text = match (self.answer.ahead_in_most, self.answer.overtaking) {
            (0, later) if later < 0.5 && has_room => "No waiting job is likely to start before it.\n".to_owned(),
            (0, later) if later < 0.5 => {
                "It waits for running jobs to end, and no waiting job is likely to start before it.\n".to_owned()
            }
            (ahead, later) => format!(
                "Likely to start before it: {ahead} of the waiting jobs, and on average {later:.1} of the jobs that \
                 come later.\n"
            ),
        };
        for ahead in &self.answer.ahead {
            text += &format!(
                "  {} ({}) starts earlier in {:.0} % of futures\n",
                ahead.job,
                counted(ahead.gpus.into(), "accelerator"),
                100.0 * ahead.share
            );
        }
        text
    }

    /// Room that ends of running jobs make, and when.
    fn room(&self) -> String {
        let StartAnswer { frees, room, free, .. } = self.answer;
        let names: Vec<&str> = frees.iter().map(|job| job.job.as_str()).collect();
        let mut text = match room {
            Some(room) => format!("{}.\n", room.words(*free, &names)),
            None if frees.is_empty() => return String::new(),
            None => "Running jobs that are likely to end before it starts:\n".to_owned(),
        };
        // The clock of a trace is a simulated one.
        let at_ms = self.queue.as_ref().map_or(0, |queue| queue.at_ms);
        for job in frees {
            let on: Vec<(&str, u32)> = job.on.iter().map(|on| (on.node.as_str(), on.gpus)).collect();
            text += &format!("  {}\n", end_words(&job.job, &on, &job.ends, at_ms));
        }
        text
    }
}
