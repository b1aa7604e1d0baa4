//! Goodput of a job in each configuration, estimated from what its agent has measured (Sia, section
//! 3.3).
//!
//! A type that the job has run on has a fitted model. The speed of another type is scaled by the
//! ratio of the two types' speeds on one accelerator, at every size. Before the first run only
//! single accelerators can be compared.

use goodput_env::cluster::TypeId;
use goodput_env::model::GoodputModel;
use goodput_env::view::JobView;

use super::configurations::TypeSizes;
use super::deviations::Deviations;
use super::program::SiaColumn;

/// Goodputs of a job by accelerator type and size, in one unit, the least of them 1 for an
/// accelerator; `cost` holds them.
pub fn utilities(job: &JobView<'_>, types: &[TypeSizes], deviations: Deviations) -> Vec<SiaColumn> {
    let mut columns = if is_rigid(job) { rigid(job, types) } else { elastic(job, types, deviations) };
    columns.retain(|column| column.cost > 0.0);
    let least = columns.iter().map(|column| column.cost).fold(f64::INFINITY, f64::min);
    // A job that needs several accelerators counts for as many at least.
    let fewest = f64::from(job.min_gpus().max(1));
    columns.iter_mut().for_each(|column| column.cost *= fewest / least);
    columns
}

/// Whether the scheduler cannot change the job's size.
fn is_rigid(job: &JobView<'_>) -> bool {
    job.application().is_none() || job.request().min_gpus() == job.request().max_gpus()
}

/// One size on each type, with the throughput known before the job starts.
fn rigid(job: &JobView<'_>, types: &[TypeSizes]) -> Vec<SiaColumn> {
    let gpus = job.request().gpus;
    let rate = |kind: TypeId| match job.application() {
        Some(app) => {
            let batch = app.fixed_batch.or(job.request().batch_size).unwrap_or(app.limits.init);
            job.fixed_throughput(kind, gpus, batch)
        }
        None => job.rate_on(kind, gpus),
    };
    let on = |kind: TypeId| (types[kind.index()].total >= gpus).then(|| rate(kind)).flatten();
    TypeId::first(types.len()).filter_map(|kind| Some(SiaColumn { kind, gpus, cost: on(kind)? })).collect()
}

fn elastic(job: &JobView<'_>, types: &[TypeSizes], deviations: Deviations) -> Vec<SiaColumn> {
    let models: Vec<Option<GoodputModel>> =
        TypeId::first(types.len()).map(|kind| model(job, kind, deviations)).collect();
    let Some(source) = source(job, &models, deviations) else { return unexplored(job, types, deviations) };
    let fixed = job.application().and_then(|app| app.fixed_batch);
    let most = job.max_gpus();
    let mut columns = Vec::new();
    for (kind, sizes) in TypeId::first(types.len()).zip(types) {
        let (from, ratio) = match (&models[kind.index()], ratio(job, kind, source, deviations)) {
            (Some(_), _) => (kind, 1.0),
            (None, Some(ratio)) => (source, ratio),
            (None, None) => continue,
        };
        let Some(model) = &models[from.index()] else { continue };
        for &gpus in sizes.sizes.iter().filter(|gpus| (job.min_gpus()..=most).contains(gpus)) {
            let cost = ratio * goodput(model, types[from.index()].nodes(gpus), gpus, fixed).unwrap_or(0.0);
            columns.push(SiaColumn { kind, gpus, cost });
        }
    }
    columns
}

/// Smallest size on each type, for a job that has not run yet. The paper profiles one accelerator
/// of each type beforehand; the artifact's agents start without a profile, and every type counts
/// alike.
fn unexplored(job: &JobView<'_>, types: &[TypeSizes], deviations: Deviations) -> Vec<SiaColumn> {
    let goodput = |kind: TypeId| {
        let throughput = job.single_throughput(kind)?;
        Some(deviations.first_goodput(throughput))
    };
    let fewest = |sizes: &TypeSizes| sizes.sizes.iter().copied().find(|&gpus| gpus >= job.min_gpus());
    let column =
        |(kind, sizes): (TypeId, &TypeSizes)| Some(SiaColumn { kind, gpus: fewest(sizes)?, cost: goodput(kind)? });
    TypeId::first(types.len()).zip(types).filter_map(column).collect()
}

/// Model of the job on a type. The artifact's optimiser takes the batch size asked for as the
/// largest allowed one, which the running job does not.
fn model(job: &JobView<'_>, kind: TypeId, deviations: Deviations) -> Option<GoodputModel> {
    Some(deviations.capped(job.goodput_model_on(kind)?, job.request().batch_size))
}

/// Type with the model that stands in for types without one: the type with most replicas measured,
/// or in the artifact the first.
fn source(job: &JobView<'_>, models: &[Option<GoodputModel>], deviations: Deviations) -> Option<TypeId> {
    let fitted = TypeId::first(models.len()).filter(|kind| models[kind.index()].is_some());
    let measured = |kind: TypeId| job.state.profile.on(kind).map_or(0, |seen| seen.max_replicas());
    fitted.reduce(|best, next| if deviations.stands_in(measured(next), measured(best)) { next } else { best })
}

/// Speed of one accelerator of `kind` relative to one of `source`.
fn ratio(job: &JobView<'_>, kind: TypeId, source: TypeId, deviations: Deviations) -> Option<f64> {
    Some(deviations.single_speed(job, kind)? / deviations.single_speed(job, source)?)
}

fn goodput(model: &GoodputModel, nodes: u32, gpus: u32, fixed: Option<u32>) -> Option<f64> {
    let Some(total) = fixed else {
        // A job of this size runs even where its smallest batch is beyond the largest that was
        // validated.
        let room = model.limits.smallest_total(gpus).min(u64::from(u32::MAX)) as u32;
        let mut model = *model;
        model.limits.max = model.limits.max.max(room);
        return model.best(nodes, gpus).map(|best| best.goodput);
    };
    let batch = model.limits.split(total, gpus);
    let allowed = (model.limits.min_local..=model.limits.max_local).contains(&batch.atomic);
    allowed.then(|| model.goodput(nodes, gpus, batch))
}
