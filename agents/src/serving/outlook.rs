//! The highest rate of requests to expect until a moment: what separates reactive from forecast-driven scaling and loaning.

use goodput_env::time::SimTime;
use goodput_env::view::{Information, ServiceView};
use goodput_forecast::{Fit, FitError, Horizon, Predict, SeasonalNaive, Series};

/// Looks ahead, or does not.
pub trait Outlook: Send {
    /// Requests per second that `service` may reach from now until `until`.
    fn peak(&mut self, service: &ServiceView<'_>, until: SimTime) -> f64;

    /// The least that has to be known.
    fn needs(&self) -> Information {
        Information::Profiled
    }
}

/// It stays as it is: the reactive outlook.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now;

impl Outlook for Now {
    fn peak(&mut self, service: &ServiceView<'_>, _until: SimTime) -> f64 {
        service.rate()
    }
}

/// What will be: the bound for every forecast. It has to be told everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told;

impl Outlook for Told {
    fn peak(&mut self, service: &ServiceView<'_>, until: SimTime) -> f64 {
        let steps = steps_until(service, until);
        let future = service.future().unwrap_or_default().iter().take(steps);
        future.map(|&milli| f64::from(milli) / 1e3).fold(service.rate(), f64::max)
    }

    fn needs(&self) -> Information {
        Information::Oracle
    }
}

/// A forecaster fitted to a service's past.
pub type Model = Box<dyn Fn(&Series) -> Result<Box<dyn Predict + Send>, FitError> + Send>;

/// A quantile of a forecast: of the window's steps the highest, an upper bound of the window's maximum at that level step by step.
pub struct Ahead {
    model: Model,
    level: f64,
    fitted: Vec<Option<Fitted>>,
}

struct Fitted {
    model: Box<dyn Predict + Send>,
    /// Steps of history when it was estimated, and those it knows.
    estimated: usize,
    known: usize,
    /// The last answer: for how many steps, and what.
    answer: Option<(usize, f64)>,
}

impl Ahead {
    /// By `model`, at quantile `level` in (0, 1). It is estimated anew once a day, and told every new value between.
    pub fn new(model: Model, level: f64) -> Self {
        Self { model, level: level.clamp(0.001, 0.999), fitted: Vec::new() }
    }

    /// As it was one day ago, at quantile `level`.
    pub fn seasonal_naive(level: f64) -> Self {
        let model = |series: &Series| -> Result<Box<dyn Predict + Send>, FitError> {
            let season_steps = series.steps_per_day().unwrap_or(1).max(1);
            Ok(Box::new(SeasonalNaive { season_steps }.fit(series)?))
        };
        Self::new(Box::new(model), level)
    }

    fn up_to_date(&mut self, service: &ServiceView<'_>) -> Option<&mut Fitted> {
        let index = service.id().index();
        if self.fitted.len() <= index {
            self.fitted.resize_with(index + 1, || None);
        }
        let history = service.history();
        let per_day = (86_400_000 / service.history_step().as_millis().max(1)) as usize;
        let due = |fitted: &Fitted| history.len() >= fitted.estimated + per_day.max(1);
        if self.fitted[index].as_ref().is_none_or(due) {
            let values: Vec<f64> = history.iter().map(|&milli| f64::from(milli) / 1e3).collect();
            let series = Series::new(0, service.history_step().as_millis(), values.into()).ok()?;
            let model = (self.model)(&series).ok()?;
            let known = history.len();
            self.fitted[index] = Some(Fitted { model, estimated: known, known, answer: None });
        }
        let fitted = self.fitted[index].as_mut()?;
        if fitted.known < history.len() {
            let new: Vec<f64> = history[fitted.known..].iter().map(|&milli| f64::from(milli) / 1e3).collect();
            fitted.model.update(&new);
            (fitted.known, fitted.answer) = (history.len(), None);
        }
        Some(fitted)
    }
}

impl Outlook for Ahead {
    fn peak(&mut self, service: &ServiceView<'_>, until: SimTime) -> f64 {
        let (now, steps, level) = (service.rate(), steps_until(service, until), self.level);
        // Past the end of its series a service has no new values, and yesterday's would be expected for ever.
        if steps == 0 || service.is_over() {
            return now;
        }
        let Some(fitted) = self.up_to_date(service) else { return now };
        let highest = match fitted.answer {
            Some((answered, highest)) if answered == steps => highest,
            _ => {
                let forecast = fitted.model.predict(Horizon::steps(steps), &[level]);
                forecast.quantiles().iter().copied().fold(0.0, f64::max)
            }
        };
        fitted.answer = Some((steps, highest));
        now.max(highest)
    }
}

/// Steps of the service's series that begin after now and not after `until`.
fn steps_until(service: &ServiceView<'_>, until: SimTime) -> usize {
    let step = service.history_step().as_millis().max(1);
    let after = until.as_millis() / step - (service.history().len() as i64 - 1);
    after.clamp(0, 10_000) as usize
}
