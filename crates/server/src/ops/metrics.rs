//! Figures for Prometheus. Calls are counted as they are answered; how things stand is read from the database at each look. No label holds
//! anything a caller typed.

use std::fmt::Write as _;
use std::path::Path;

use cmautobuy_protocol::WireTime;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::clock::Stopwatch;
use crate::house::House;
use crate::refusal::CallError;
use crate::store::figures::Figures;

/// Upper bounds in seconds: a claim is some milliseconds, a login some hundred.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    /// The route's pattern.
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: String,
    route: String,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<Answered, Counter>,
    seconds: Family<Route, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("autobuy");
        let calls = Family::<Answered, Counter>::default();
        let seconds = Family::<Route, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register("build", "The program that answers", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("http_requests", "Calls answered, by route and status", calls.clone());
        registry.register_with_unit("http_request_duration", "From a call's headers to its answer", Unit::Seconds, seconds.clone());
        Self { registry, calls, seconds }
    }
}

impl Metrics {
    /// `route` is the pattern of a route there is, so that nobody can make labels.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Stopwatch) {
        let (method, route) = (method.to_owned(), route.to_owned());
        self.seconds.get_or_create(&Route { method: method.clone(), route: route.clone() }).observe(took.elapsed().as_secs_f64());
        self.calls.get_or_create(&Answered { method, route, status }).inc();
    }
}

/// OpenMetrics text. Blocks.
pub(crate) fn text(house: &House) -> Result<String, CallError> {
    let (figures, now) = house.read(|call| Ok((call.figures()?, call.now)))?;
    let mut text = String::new();
    let standing = gauges(&figures, now, house.database_bytes(), free_bytes(&house.config.data_dir));
    // A String takes everything that is written to it.
    let _ = encode(&mut text, &house.metrics.registry);
    let end = "# EOF\n";
    text.truncate(text.len() - if text.ends_with(end) { end.len() } else { 0 });
    let _ = encode(&mut text, &standing);
    Ok(text)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

/// Their own registry each time, so that two looks at once do not mix.
fn gauges(figures: &Figures, now: WireTime, database_bytes: u64, free_bytes: Option<u64>) -> Registry {
    let mut registry = Registry::with_prefix("autobuy");
    let gauge = |value: u64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        gauge
    };
    let tasks = Family::<Status, Gauge>::default();
    for (status, count) in &figures.tasks {
        tasks.get_or_create(&Status { status: status.as_str() }).set(i64::try_from(*count).unwrap_or(i64::MAX));
    }
    registry.register("tasks", "Tasks that have not ended", tasks);
    let age_ms = figures.oldest_pending.map_or(0, |at| now.ms_since(at).max(0));
    let age = gauge(u64::try_from(age_ms / 1000).unwrap_or(0));
    registry.register_with_unit("oldest_pending_age", "How long the oldest PENDING task has waited", Unit::Seconds, age);
    registry.register("tasks_stalled", "RUNNING tasks whose lease ran out: a person must decide", gauge(figures.stalled));
    registry.register("tasks_held", "Live purchases a restore holds", gauge(figures.held));
    let devices = Family::<State, Gauge>::default();
    for (state, count) in [("live", figures.devices_live), ("silent", figures.devices_silent), ("disabled", figures.devices_disabled)] {
        devices.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("devices", "Devices by what was heard of them last", devices);
    registry.register_with_unit("database_size", "Database with its write-ahead log", Unit::Bytes, gauge(database_bytes));
    if let Some(free) = free_bytes {
        registry.register_with_unit("disk_free", "Free disk where the database is", Unit::Bytes, gauge(free));
    }
    registry
}

/// Free disk a folder can still take; `None` when the system does not say.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    fs4::available_space(folder).ok()
}

/// Bytes as a person reads them.
pub(crate) fn human(bytes: u64) -> String {
    let mut text = String::new();
    let _ = write!(text, "{} MiB", bytes >> 20);
    text
}
