//! Model card: a page about a trained policy for its users. It says from which data and by which
//! command the policy was trained, how well it does, and where its use ends.
//!
//! All of it is read from the run's own files, so that a card is exported again by the same command
//! after another training. What a person has added under [`NOTES`] is kept.

use goodput_agents::bundle::PolicyBundle;
use goodput_eval::report::interval_name;
use goodput_eval::report::leaderboard::ranking;
use goodput_eval::run::summary::Summary;

/// Heading of what a person has added; everything from it on is kept.
pub const NOTES: &str = "\n## Notes\n";
const JCT: &str = "jct_mean_secs";

/// Inputs of a model card.
#[derive(Clone, Copy, Debug)]
pub struct ModelCard<'a> {
    /// Name of the policy.
    pub name: &'a str,
    /// Policy that the card describes.
    pub bundle: &'a PolicyBundle,
    /// The resolved configuration, TOML.
    pub config: &'a str,
    /// The comparison on held-out seeds at the end of the training.
    pub results: &'a Summary,
    /// The command that exports it again.
    pub export: &'a str,
    /// The card that it takes the place of.
    pub before: &'a str,
}

impl ModelCard<'_> {
    /// The card, Markdown.
    pub fn render(&self) -> String {
        let notes = self.before.find(NOTES).map_or("", |at| &self.before[at..]);
        let parts = [self.facts(), self.command(), self.results(), self.limits(), self.data()];
        format!("# {}\n\n{}{notes}", self.name, parts.join("\n"))
    }

    fn facts(&self) -> String {
        let (bundle, card) = (self.bundle, &self.bundle.card);
        let size = bundle.to_bytes().len() as f64 / 1024.0;
        let learned_from = match bundle.kind() {
            "utility" | "linear" | "hold" => "Episodes learned from",
            "queue" => "Steps of its training",
            _ => "Decisions learned from",
        };
        let rows = [
            ("Kind", format!("{}, {size:.1} KiB", bundle.kind())),
            ("SHA-256 of the bundle", bundle.sha256()),
            ("SHA-256 of the configuration", card.provenance.config_sha256.clone()),
            ("Schema of its features", card.schema_hash.clone()),
            ("Knows of jobs", card.information.clone()),
            ("Seed", card.provenance.seed.to_string()),
            (learned_from, card.provenance.steps.to_string()),
        ];
        let rows: String = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
        format!("| | |\n|---|---|\n{rows}")
    }

    fn command(&self) -> String {
        let train = command(&self.bundle.card.provenance.argv);
        format!("## Command\n\n    {train}\n    {}\n", self.export)
    }

    fn results(&self) -> String {
        let mut text = format!(
            "## Results\n\nMean completion time on held-out seeds, with {}; `longer by` is a policy's mean over that of the reference, paired by \
             seed.\n\n| workload | policy | mean JCT | longer by | p99 JCT |\n|---|---|---|---|---|\n",
            interval_name(self.results)
        );
        for workload in &self.results.workloads {
            for policy in ranking(self.results) {
                let value = |key: &str| Some(policy.by_workload.get(&workload.name)?.get(key)?.value);
                let secs = |key: &str| value(key).map_or_else(String::new, |secs| format!("{secs:.0} s"));
                let against = self.longer(&policy.name, &workload.name);
                let against = against.map_or_else(
                    || if policy.name == self.results.reference { "reference".into() } else { String::new() },
                    |[mean, low, high]| format!("{mean:.1} % [{low:.1}, {high:.1}]"),
                );
                let (mean, tail) = (secs(JCT), secs("jct_p99_secs"));
                text += &format!("| {} | {} | {mean} | {against} | {tail} |\n", workload.name, policy.name);
            }
        }
        text
    }

    /// Percent by which a policy's mean completion time is longer than the reference's on a
    /// workload, with its interval.
    fn longer(&self, policy: &str, workload: &str) -> Option<[f64; 3]> {
        let versus = self.results.policy(policy)?.versus_reference.as_ref()?;
        // With a single workload the figures over all are those of it.
        let ratio = versus.by_workload.get(workload).map_or(&versus.ratio, |on| &on.ratio).get(JCT)?;
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let interval = ratio.ci?;
        Some([percent(ratio.value), percent(interval.low), percent(interval.high)])
    }

    fn limits(&self) -> String {
        let mut text = String::from("## Limits\n\n");
        for (what, [low, high]) in &self.bundle.card.bounds {
            let range = if low == high { format!("{low}") } else { format!("{low} to {high}") };
            text += &format!("- Met in training: {} = {range}; outside it extrapolates.\n", what.replace('_', " "));
        }
        text += &format!("- Runs at information level `{}`; it was never shown more.\n", self.bundle.card.information);
        text += "- One training seed: how much another one would differ is not known from this card.\n";
        for workload in &self.results.workloads {
            let others = self.results.policies.iter().filter(|policy| policy.name != self.results.reference);
            for policy in others {
                if let Some([mean, low, _]) =
                    self.longer(&policy.name, &workload.name).filter(|[_, low, _]| *low <= 0.0)
                {
                    let how = if mean < 0.0 { "worse than" } else { "not told apart from" };
                    text += &format!("- On {}: {how} {} ({mean:.1} %, from {low:.1} %).\n", workload.name, policy.name);
                }
            }
        }
        text
    }

    fn data(&self) -> String {
        format!(
            "## Data\n\nEverything it was trained on follows from this configuration and the seed.\n\n```toml\n{}\n```\n",
            self.config.trim()
        )
    }
}

/// A command line as one would type it, without the folder that the program lies in.
pub fn command(argv: &[String]) -> String {
    let plain = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=./,:+@".contains(&b));
    let typed = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    let words = argv.iter().skip(1).map(typed);
    std::iter::once("goodput".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Reason for which the card or the bundle of a shipped policy is out of date; `None` where both
/// are current. The message names the remedy.
pub fn stale(name: &str, bytes: &[u8], card: &str) -> Option<String> {
    let path = std::path::Path::new(name);
    let bundle = match PolicyBundle::from_bytes(bytes, path) {
        Ok(bundle) => bundle,
        Err(error) => return Some(format!("{error}\nexport it again: goodput export RUN_DIR --to agents/zoo/{name}")),
    };
    let train = command(&bundle.card.provenance.argv);
    let again = || {
        let commands: Vec<&str> = card.lines().filter_map(|line| line.strip_prefix("    goodput ")).collect();
        let commands: Vec<String> = commands.iter().map(|command| format!("  goodput {command}")).collect();
        format!("train and export it again, as its card says:\n{}", commands.join("\n"))
    };
    let sha256 = bundle.sha256();
    let problem = if let Err(error) = bundle.clone().checked(path) {
        format!("{error}")
    } else if !card.contains(&format!("    {train}\n")) {
        format!("its card does not name the command that trained it: {train}")
    } else if !card.contains(&sha256) {
        format!("its card is of another bundle than {sha256}")
    } else {
        return None;
    };
    Some(format!("{name}: {problem}\n{}", again()))
}
