//! A phone that speaks real ADB over TCP with a Pinduoduo model in it, for the demo, for training
//! and for tests. The stock `adb` client works against it.
//!
//! It never talks to a network beyond its listening socket, and it never accepts a payment:
//! [`Sim::payments_accepted`] is always 0 because no code counts one.

mod adb;
mod catalogue;
mod clock;
mod config;
mod model;
mod phone;
mod render;
mod shell;
mod view;
mod xml;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub use catalogue::{Abandon, Art, Catalogue, CatalogueError, ChipLayout, ChipStyle, DimValue, Dimension, DimensionKind, Goods};
pub use config::{Auth, Fault, JournalEntry, JournalKind, SimConfig};
use phone::{Phone, until};

/// A running simulated phone. Dropping it ends it as [`Sim::stop`] does, without waiting.
#[derive(Debug)]
pub struct Sim {
    addr: SocketAddr,
    phone: Arc<Phone>,
    listening: JoinHandle<()>,
}

/// Starts listening; fails when the address cannot be bound.
pub async fn start(config: SimConfig) -> io::Result<Sim> {
    let listener = TcpListener::bind(config.listen).await?;
    let addr = listener.local_addr()?;
    let phone = Arc::new(Phone::new(config));
    let listening = tokio::spawn(listen(phone.clone(), listener));
    Ok(Sim { addr, phone, listening })
}

async fn listen(phone: Arc<Phone>, listener: TcpListener) {
    let mut control = phone.control.subscribe();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = until(&mut control, |now| now.stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(adb::serve(phone.clone(), socket));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept an ADB connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    // Each connection watches the same flag; none outlives us.
    while connections.join_next().await.is_some() {}
}

impl Sim {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every tap, swipe, key and link so far, with what it hit.
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.phone.journal()
    }

    /// Orders the submit button created. A reader must leave this at 0.
    pub fn orders_created(&self) -> u32 {
        self.phone.with_model(|model| model.orders_created())
    }

    /// Always 0: no page of the model can complete a payment.
    pub fn payments_accepted(&self) -> u32 {
        0
    }

    pub fn set_fault(&self, fault: Fault) {
        self.phone.set_fault(fault);
    }

    pub fn clear_faults(&self) {
        self.phone.clear_faults();
    }

    /// Answers the `Allow USB debugging?` prompt of [`Auth::AllowAny`] with `ask`.
    pub fn answer_key_prompt(&self, allow: bool) {
        self.phone.answer_key_prompt(allow);
    }

    /// `launcher`, `home`, `goods:<id>`, `sheet:<id>`, `abandon`, `payment`, `captcha`, `login`,
    /// `sold_out`, `removed`, `network_error`, `gallery`, `orders`, `locked` or `screen_off`.
    pub fn screen_name(&self) -> String {
        self.phone.with_model(|model| model.screen_name())
    }

    /// The screen as a 1080x2400 PNG.
    pub fn screenshot_png(&self) -> Vec<u8> {
        self.phone.screenshot()
    }

    /// Closes every connection and waits for them.
    pub async fn stop(mut self) {
        self.phone.control.send_modify(|control| control.stop = true);
        if let Err(error) = (&mut self.listening).await {
            tracing::debug!(%error, "the listener had already ended");
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.phone.control.send_modify(|control| control.stop = true);
    }
}
