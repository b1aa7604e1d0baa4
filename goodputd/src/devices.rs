//! `live devices`: accelerators of this machine.

use std::path::Path;
use std::time::Duration;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, say};
use goodput_executor::devices::{DeviceError, DeviceSource, Inventory, NvmlSource, watch};

/// Lists the accelerators once, or every `period` seconds until interrupted.
pub fn run(period: Option<f64>, nvml: Option<&Path>, output: OutputFormat) -> Result<(), CommandError> {
    let mut source = match nvml {
        Some(path) => NvmlSource::open_library(path),
        None => NvmlSource::open(),
    }
    .map_err(device_error)?;
    match period {
        None => print(&source.list().map_err(device_error)?, output)?,
        Some(secs) if secs > 0.0 && secs < 1e6 => follow(source, Duration::from_secs_f64(secs), output)?,
        Some(secs) => {
            return Err(CommandError::input(format!("--watch {secs}: expected a positive number of seconds")));
        }
    }
    Ok(())
}

/// Prints every reading until interrupted. A reading that fails is reported, and the next one tried.
fn follow(source: NvmlSource, period: Duration, output: OutputFormat) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    let result = runtime.block_on(async {
        let mut readings = watch(source, period);
        loop {
            tokio::select! {
                reading = readings.recv() => match reading {
                    Some(Ok(inventory)) => print(&inventory, output)?,
                    Some(Err(error)) => say(&error.to_string()),
                    None => return Ok(()),
                },
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
    });
    // A driver that hangs would otherwise keep the program alive.
    runtime.shutdown_background();
    result
}

fn device_error(error: DeviceError) -> CommandError {
    let remedy = error.remedy();
    let failed = CommandError::failed(error);
    match remedy {
        Some(remedy) => failed.with_help(remedy),
        None => failed,
    }
}

fn print(inventory: &Inventory, output: OutputFormat) -> Result<(), CommandError> {
    let mut rows = Listing::new(&[
        "index",
        "name",
        "uuid",
        "memory_used_mib",
        "memory_total_mib",
        "compute_percent",
        "temperature_celsius",
        "power_watts",
        "processes",
    ]);
    for device in &inventory.devices {
        rows.push(vec![
            Cell::Whole(i64::from(device.index)),
            device.name.as_str().into(),
            device.uuid.as_str().into(),
            Cell::option(device.memory_used_mib, |mib| Cell::Whole(mib as i64)),
            Cell::option(device.memory_total_mib, |mib| Cell::Whole(mib as i64)),
            Cell::option(device.compute_percent, |percent| Cell::Whole(i64::from(percent))),
            Cell::option(device.temperature_celsius, |celsius| Cell::Whole(i64::from(celsius))),
            Cell::option(device.power_watts, |watts| Cell::Number(watts, 1)),
            Cell::option(device.processes, |count| Cell::Whole(i64::from(count))),
        ]);
    }
    for fault in &inventory.faults {
        say(&format!("device {}: {}", fault.index, fault.message));
    }
    rows.print(output)
}
