//! Doing what a finding offered, and taking it back.
//!
//! Only what harms nobody: starting our server, kicking an offline transport, joining again, animation scales (facts/adb B: set them
//! to 0 and restore them after). Nothing here presses anything on the phone.

use std::time::Duration;

use crate::adb::{AdbError, answers};
use crate::connect::{ConnectError, PRIVATE_PORT};
use crate::doctor::Road;
use crate::doctor::causes::AutoFix;
use crate::doctor::edge::Edge;
use crate::doctor::evidence::{SCALES, Through, through};

const QUICK: Duration = Duration::from_secs(5);

/// How to take a fix back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// The animation scales as they were; `None` was unset.
    Animations { scales: [Option<String>; 3] },
}

/// Done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    pub undo: Option<Undo>,
}

pub(super) async fn apply(edge: &dyn Edge, road: &Road, fix: &AutoFix) -> Result<Fixed, ConnectError> {
    match fix {
        AutoFix::StartServer => edge.start_server(PRIVATE_PORT).await?,
        AutoFix::ReconnectOffline { server } => edge.reconnect_offline(*server).await?,
        AutoFix::Rejoin { server, address } => edge.rejoin(*server, *address).await?,
        AutoFix::AnimationsOff { scales } => {
            let through = through(edge, road).await?;
            for name in SCALES {
                put(edge, &through, name, Some("0")).await?;
            }
            return Ok(Fixed { undo: Some(Undo::Animations { scales: scales.clone() }) });
        }
    }
    Ok(Fixed { undo: None })
}

pub(super) async fn take_back(edge: &dyn Edge, road: &Road, undo: &Undo) -> Result<(), ConnectError> {
    let Undo::Animations { scales } = undo;
    let through = through(edge, road).await?;
    for (name, scale) in SCALES.iter().zip(scales) {
        put(edge, &through, name, scale.as_deref()).await?;
    }
    Ok(())
}

async fn put(edge: &dyn Edge, through: &Through, name: &str, value: Option<&str>) -> Result<(), ConnectError> {
    const WHAT: &str = "change an animation scale";
    let cmd = match value {
        // Only a number is ever written back, whatever the phone once said.
        Some(value) if value.parse::<f64>().is_ok() => format!("settings put global {name} {value}"),
        Some(_) | None => format!("settings delete global {name}"),
    };
    let output =
        edge.shell(through.as_ref().map(|(server, serial)| (*server, serial.as_str())), &cmd, QUICK).await.map_err(
            |error| match error {
                AdbError::Timeout => ConnectError::Timeout { what: WHAT, limit: QUICK },
                other => ConnectError::Server(other),
            },
        )?;
    if output.code == 0 {
        return Ok(());
    }
    Err(ConnectError::AdbFailed { what: WHAT, said: answers::text(&output.stderr).trim().chars().take(200).collect() })
}
