//! Pages of the lists that `goodput list` prints.

use crate::command::list;
use goodput_console::CommandError;
use goodput_console::markdown::head;

/// Page of the policies, published and trained.
pub fn policies() -> Result<String, CommandError> {
    let mut page = head(
        "Policies",
        "A policy is named in configuration files and after `--policies`. `goodput list policies`, `goodput\n\
         list zoo` and `goodput list placements` print these tables.",
    );
    let published = list::policies();
    page.push_str("\n## Published policies\n\n");
    page.push_str(&published.markdown(&["policy", "about", "source"]));
    page.push_str(
        "\n## Needs and traits of published policies\n\n\
         `needs` is the least [information level](../explanation/information-levels.md) that the policy runs\n\
         with, and `as_published` the level of its publication. `replica` tells whether the program also has\n\
         the policy as the public artifact implements it.\n\n",
    );
    let traits = ["policy", "needs", "as_published", "preemptive", "elastic", "heterogeneous", "replica"];
    page.push_str(&published.markdown(&traits));
    page.push_str(
        "\n## Parameters of published policies\n\n\
         A name takes parameters in parentheses, as in `gandiva(quantum_secs=600)` or\n\
         `tiresias(limits=[3250, 7200], starvation_knob=2)+reactive`. A configuration file may also have a table:\n\
         `{ name = \"gandiva\", quantum_secs = 600 }`. Results name the parameters that differ from their\n\
         defaults. `goodput list policies --parameters` prints this table. Policies that are not in it have none.\n\n",
    );
    page.push_str(&list::parameters().markdown(&[]));
    page.push_str("\n## Trained policies that ship with the program\n\n");
    page.push_str(&list::zoo()?.markdown(&[]));
    page.push_str("\n## Placement strategies\n\n");
    page.push_str(&list::placements().markdown(&[]));
    Ok(page)
}

/// Page of the metrics of evaluations.
pub fn metrics() -> String {
    let mut page = head(
        "Metrics",
        "`goodput eval` writes these figures for each policy and seed. `better` names the direction in which\n\
         a figure improves. `goodput list metrics` prints this table.",
    );
    page.push_str(&format!("\n{}", list::metrics().markdown(&[])));
    page
}

/// Page of the formats of traces, profiles and load series.
pub fn formats() -> String {
    let mut page = head(
        "File formats",
        "The program recognises a format by its header, or by the option that names the file. A workload may\n\
         be compressed by gzip or xz. `goodput list\n\
         formats` prints this table.",
    );
    page.push_str(&format!("\n{}", list::formats().markdown(&[])));
    page.push_str(
        "\n## The job table\n\nEvery importer fills this table. `goodput data schema` prints its columns.\n\n",
    );
    page.push_str(&list::job_table().markdown(&[]));
    page
}

/// Page of accelerator types, applications, switching costs, presets and reproductions.
pub fn models() -> Result<String, CommandError> {
    let mut page = head(
        "Accelerators, applications, switching costs, presets and reproductions",
        "`goodput list accelerators`, `goodput list applications`, `goodput list switch-costs`, `goodput list\n\
         presets` and `goodput list reproductions` print these tables.",
    );
    page.push_str("\n## Accelerator types\n\n");
    page.push_str(&list::accelerators().markdown(&[]));
    page.push_str(
        "\n## Applications\n\n\
         A name is a value of the column `application` of a job table, and a key of `workload.synthetic.diurnal.mix`.\n\
         An adapted batch size is one that a policy may change. `gpus` is the range of sizes at which a job can run.\n\n",
    );
    let applications = list::applications()?;
    page.push_str(&applications.markdown(&["application", "batch", "batch_size", "sample", "gpus", "types"]));
    page.push_str("\n## Sources of applications\n\n");
    page.push_str(&applications.markdown(&["application", "sources"]));
    page.push_str(
        "\n## Switching costs\n\n\
         A name is a value of `environment.switch_cost`. The figures are seconds that a job stands still: when\n\
         it starts on 4 accelerators (`cold`), grows to 8, shrinks to 2, moves to 4 others, or resumes on 4.\n\n",
    );
    let costs = list::switch_costs();
    page.push_str(&costs.markdown(&["model", "application", "cold", "grow", "shrink", "move", "resume"]));
    page.push_str("\n## Sources of switching costs\n\n");
    page.push_str(&costs.markdown(&["model", "about", "source"]));
    page.push_str(
        "\n## Presets\n\n\
         A preset is the conventions of a published simulator: `--preset NAME` of `goodput sim` and `goodput eval`,\n\
         and `environment.preset` of a file. Batching and information are those of the whole simulator, or each\n\
         policy's own as published. [Compare under a published simulator's\n\
         conventions](../how-to/use-published-conventions.md) shows the use.\n\n",
    );
    let presets = list::presets();
    let conventions =
        ["preset", "rounds", "release", "epoch_end", "switch_cost", "batching", "information", "agent_fit"];
    page.push_str(&presets.markdown(&conventions));
    page.push_str("\n## Sources of presets\n\n");
    page.push_str(&presets.markdown(&["preset", "about", "source"]));
    page.push_str(
        "\n## Published tables that can be computed again\n\n\
         `goodput reproduce NAME --data DIR` reads the public files below `DIR`.\n\n",
    );
    page.push_str(&list::reproductions().markdown(&[]));
    Ok(page)
}
