//! A submission as a suspended Job, and the headless service by which its pods find each other.

use goodput_configs::live::engine::KubernetesConfig;
use goodput_env::job::Work;
use serde_json::{Map, Value, json};

use super::facts::{GATE, MANAGED, TENANT, WantedState, annotation};
use super::jobs::JobRead;
use super::per_gpu::PerGpu;
use crate::engine::mailbox::{supervisor_hash, supervisor_path, token_hash};
use crate::engine::{Submission, batch_text, digest};
use crate::job::Fence;
use crate::job::contract::{FENCE, NODE, VERSION};

/// Exit code of a program that has left a checkpoint because it was told to go.
const PREEMPTED: i32 = crate::job::exit::PREEMPTED;
/// Folder of checkpoints in a container, unless the submission names another one.
const CHECKPOINTS: &str = "/checkpoints";
/// Folder of the certificate of the interface's authority in a container.
const AUTHORITY: &str = "/var/run/goodput";
/// Port on which the pod of rank 0 may listen.
const MASTER_PORT: u16 = 29500;

/// Name of a submitted job: the user's, as Kubernetes takes names, and a part that no other has.
/// Its pods are called by it and their index, within the 63 characters of a host name.
pub(super) fn name_of(job: &Submission, fence: &Fence) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = job.spec.request.name.chars().map(plain).take(40).collect();
    let name = name.trim_matches('-');
    // A service may not begin with a digit.
    let name =
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { format!("job-{name}") };
    let submit = job.spec.request.submit.as_millis().to_string();
    format!("{}-{}", name.trim_end_matches('-'), &digest(&[&submit, fence.as_str()])[..8])
}

/// The Job of a submission, suspended, as the daemon applies it.
pub(super) fn job(
    submission: &Submission,
    name: &str,
    fence: &Fence,
    each: PerGpu,
    settings: &KubernetesConfig,
    image: &str,
) -> Value {
    let request = &submission.spec.request;
    let mut annotations = Map::new();
    let mut note = |key: &str, value: Option<String>| {
        annotations.extend(value.filter(|value| !value.is_empty()).map(|value| (key.to_owned(), Value::from(value))));
    };
    note(annotation::NAME, Some(request.name.clone()));
    note(annotation::GPUS, Some(request.gpus.to_string()));
    note(annotation::MIN, Some(request.min_gpus().to_string()));
    note(annotation::MAX, Some(request.max_gpus().to_string()));
    note(annotation::SUBMIT_MS, Some(request.submit.as_millis().to_string()));
    note(annotation::PRIORITY, (request.priority != 0).then(|| request.priority.to_string()));
    note(annotation::APPLICATION, submission.application.clone());
    note(annotation::BATCH, submission.batch.map(batch_text::write));
    note(annotation::CPUS, each.cpus.map(|cpus| cpus.to_string()));
    note(annotation::MEMORY, each.memory_mib.map(|mib| mib.to_string()));
    note(annotation::OWNER, Some(submission.owner.clone()));
    note(annotation::TOKEN, Some(token_hash(fence)));
    note(annotation::SUPERVISOR, Some(supervisor_hash(fence)));
    note(annotation::WANTED, Some(WantedState::Held.word().into()));
    if let Work::Fixed { duration } = submission.spec.work {
        note(annotation::DURATION_MS, Some(duration.as_millis().to_string()));
    }
    let mut labels = json!({ MANAGED: "true" });
    if !submission.tenant.is_empty() {
        labels[TENANT] = submission.tenant.as_str().into();
    }
    let folder = submission.checkpoint_dir.clone().unwrap_or_else(|| CHECKPOINTS.into()).display().to_string();
    let kept = settings.checkpoint_claim.is_some() || submission.checkpoint_dir.is_some();
    let mut container = json!({
        "name": "job",
        "image": image,
        "command": submission.command,
        "env": environment(submission, name, fence, settings, kept.then_some(folder.as_str())),
        "resources": each.container(&settings.resource, request.gpus),
    });
    if let Some(directory) = &submission.directory {
        container["workingDir"] = directory.display().to_string().into();
    }
    let mut pod = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": submission.grace_s,
        "subdomain": name,
        "schedulingGates": [{ "name": GATE }],
    });
    if !settings.tolerated.is_empty() {
        let toleration = |key: &String| json!({ "key": key, "operator": "Exists" });
        pod["tolerations"] = settings.tolerated.iter().map(toleration).collect();
    }
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    if let Some(claim) = &settings.checkpoint_claim {
        volumes.push(json!({ "name": "checkpoints", "persistentVolumeClaim": { "claimName": claim } }));
        mounts.push(json!({ "name": "checkpoints", "mountPath": folder, "subPath": name }));
    }
    if let Some(map) = &settings.report_ca {
        volumes.push(json!({ "name": "report-ca", "configMap": { "name": map } }));
        mounts.push(json!({ "name": "report-ca", "mountPath": AUTHORITY, "readOnly": true }));
    }
    (pod["volumes"], container["volumeMounts"]) = (volumes.into(), mounts.into());
    pod["containers"] = json!([container]);
    // Pods that were told to go have not failed, and are made anew only when they are gone.
    let forgiven = json!({ "rules": [
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [PREEMPTED] } },
    ] });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "labels": labels, "annotations": annotations },
        "spec": {
            "suspend": true,
            "completionMode": "Indexed",
            "parallelism": 1,
            "completions": 1,
            "ttlSecondsAfterFinished": settings.keep_ended_secs,
            // The clock begins anew with every attempt: a Job that is suspended loses its start time.
            "activeDeadlineSeconds": submission.resources.time_limit_mins.map(|minutes| 60 * i64::from(minutes)),
            "backoffLimit": submission.retry.failures.min(i32::MAX as u32),
            "podFailurePolicy": forgiven,
            "podReplacementPolicy": "Failed",
            // Ranks end together: where rank 0 has ended well, the job does not begin anew for a rank that had to go.
            "successPolicy": { "rules": [{ "succeededIndexes": "0" }] },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

/// Environment of the job protocol. What changes from attempt to attempt comes from the annotations
/// of the pod, since a template does not change its variables.
fn environment(
    submission: &Submission,
    name: &str,
    fence: &Fence,
    settings: &KubernetesConfig,
    folder: Option<&str>,
) -> Vec<Value> {
    let said = |name: &str, value: String| json!({ "name": name, "value": value });
    let told = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let noted = |name: &str, annotation: &str| told(name, &format!("metadata.annotations['{annotation}']"));
    let mut all = vec![
        said("SCHED_PROTOCOL", VERSION.to_string()),
        noted("SCHED_JOB_ID", annotation::KEY),
        noted("SCHED_ATTEMPT", annotation::ATTEMPT),
        said(FENCE, fence.as_str().into()),
        told(NODE, "spec.nodeName"),
        said("SCHED_GRACE_S", submission.grace_s.to_string()),
        noted("SCHED_GPUS", annotation::WORLD),
        noted("WORLD_SIZE", annotation::WORLD),
        noted("NNODES", annotation::PODS),
        noted("NODE_RANK", "batch.kubernetes.io/job-completion-index"),
        noted("NPROC_PER_NODE", annotation::POD_GPUS),
        said("MASTER_ADDR", format!("{name}-0.{name}")),
        said("MASTER_PORT", MASTER_PORT.to_string()),
        noted("TORCHELASTIC_RESTART_COUNT", annotation::ATTEMPT),
        said("TORCHELASTIC_RUN_ID", "$(SCHED_JOB_ID).$(SCHED_ATTEMPT)".into()),
        said("ADAPTDL_JOB_ID", format!("goodput/{name}")),
        noted("ADAPTDL_NUM_RESTARTS", annotation::ATTEMPT),
        noted("ADAPTDL_NUM_NODES", annotation::PODS),
        noted("ADAPTDL_NUM_REPLICAS", annotation::WORLD),
        said("ADAPTDL_MASTER_ADDR", format!("{name}-0.{name}")),
    ];
    if let Some(url) = &settings.report_url {
        all.push(said("SCHED_URL", url.clone()));
        // The address contains a key of this job and the attempt of the pod, because AdaptDL sends no token.
        let path = supervisor_path(fence, "$(SCHED_ATTEMPT)");
        all.push(said("ADAPTDL_SUPERVISOR_URL", format!("{}{path}", url.trim_end_matches('/'))));
    }
    if settings.report_ca.is_some() {
        all.push(said("SCHED_CA", format!("{AUTHORITY}/ca.crt")));
    }
    if let Some(folder) = folder {
        all.push(said("SCHED_CHECKPOINT_DIR", folder.into()));
        all.push(said("ADAPTDL_CHECKPOINT_PATH", folder.into()));
    }
    let protocol: Vec<Value> = all.iter().map(|variable| variable["name"].clone()).collect();
    let own = submission.environment.iter().map(|(name, value)| said(name, value.clone()));
    all.extend(own.filter(|variable| !protocol.contains(&variable["name"])));
    all
}

/// The headless service of a job: each pod has a name in it, also before the pod is ready.
pub(super) fn service(job: &JobRead, subdomain: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain,
            "labels": { MANAGED: "true" },
            // It goes with its job.
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": job.uid,
            }],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": { "batch.kubernetes.io/job-name": job.name },
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use goodput_env::job::{JobRequest, JobSpec};
    use goodput_env::time::SimTime;

    use super::*;

    fn submission(name: &str) -> Submission {
        let request = JobRequest { name: name.into(), gpus: 4, ..JobRequest::default() };
        let work = Work::Fixed { duration: SimTime::from_millis(5000) };
        let environment = [("SCHED_FENCE".to_owned(), "mine".to_owned()), ("LR".to_owned(), "0.1".to_owned())].into();
        Submission { environment, ..Submission::new(JobSpec { request, work }, vec!["train".into()]) }
    }

    #[test]
    fn names_are_names_of_hosts_and_differ() {
        let fence = Fence::from_text("1");
        for (name, begins) in [("My Job!", "my-job-"), ("7b", "job-7b-"), ("", "job-"), (&"x".repeat(90), "xxx")] {
            let made = name_of(&submission(name), &fence);
            assert!(made.starts_with(begins) && made.len() <= 57, "{made}");
            assert!(
                made.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{made}"
            );
            assert!(!made.contains("--"), "{made}");
            assert_ne!(made, name_of(&submission(name), &Fence::from_text("2")));
        }
    }

    #[test]
    fn a_submission_is_a_suspended_job_whose_variables_cannot_be_forged() {
        let settings = KubernetesConfig { checkpoint_claim: Some("ck".into()), ..KubernetesConfig::default() };
        let fence = Fence::from_text("1");
        let made = job(&submission("a"), "a-1", &fence, PerGpu::default(), &settings, "train:1");
        assert_eq!((&made["spec"]["suspend"], &made["spec"]["ttlSecondsAfterFinished"]), (&true.into(), &Value::Null));
        let container = &made["spec"]["template"]["spec"]["containers"][0];
        let of = |name: &str| -> Vec<&Value> {
            container["env"].as_array().unwrap().iter().filter(|variable| variable["name"] == name).collect()
        };
        assert_eq!(of("SCHED_FENCE"), [&json!({ "name": "SCHED_FENCE", "value": fence.as_str() })]);
        assert_eq!(of("LR").len(), 1);
        assert_eq!(of("SCHED_CHECKPOINT_DIR")[0]["value"], "/checkpoints");
        assert_eq!(container["volumeMounts"][0]["subPath"], "a-1");
        let tolerations = &made["spec"]["template"]["spec"]["tolerations"];
        assert_eq!(tolerations, &json!([{ "key": "nvidia.com/gpu", "operator": "Exists" }]));
        assert!(!made["metadata"]["annotations"].to_string().contains(fence.as_str()), "only its hash is there");
        let read: k8s_openapi::api::batch::v1::Job = serde_json::from_value(made).unwrap();
        let read = JobRead::of(&read, Vec::new(), 0, &settings);
        assert_eq!(read.seen(false).spec.request.name, "a", "the user's own name, not that of the Job");
        assert_eq!((read.hands_off.clone(), read.sizes(), read.settled), (None, (4, 4, 4), true));
    }

    #[test]
    fn what_a_submission_and_the_deployment_ask_for_is_in_the_job() {
        let settings = KubernetesConfig {
            keep_ended_secs: Some(3600),
            report_url: Some("https://head:7070".into()),
            report_ca: Some("authority".into()),
            ..KubernetesConfig::default()
        };
        let mut asked = submission("a");
        asked.resources.time_limit_mins = Some(2);
        let each = PerGpu { cpus: Some(8), memory_mib: None };
        let made = job(&asked, "a-1", &Fence::from_text("1"), each, &settings, "train:1");
        let spec = &made["spec"];
        assert_eq!((&spec["ttlSecondsAfterFinished"], &spec["activeDeadlineSeconds"]), (&json!(3600), &json!(120)));
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["volumes"], json!([{ "name": "report-ca", "configMap": { "name": "authority" } }]));
        let container = &pod["containers"][0];
        assert_eq!(container["volumeMounts"][0]["mountPath"], "/var/run/goodput");
        let ca = container["env"].as_array().unwrap().iter().find(|variable| variable["name"] == "SCHED_CA").unwrap();
        assert_eq!(ca["value"], "/var/run/goodput/ca.crt");
        let supervisor = container["env"].as_array().unwrap().iter().find(|is| is["name"] == "ADAPTDL_SUPERVISOR_URL");
        let secret = Fence::from_text("1");
        let told = format!("https://head:7070/adaptdl/{}.$(SCHED_ATTEMPT)", secret.supervisor_key());
        assert_eq!(supervisor.unwrap()["value"], told);
        assert_eq!(container["resources"]["limits"]["cpu"], "32");
        let read: k8s_openapi::api::batch::v1::Job = serde_json::from_value(made).unwrap();
        assert_eq!(JobRead::of(&read, Vec::new(), 0, &settings).facts.each, each, "it is read again at each start");
    }
}
