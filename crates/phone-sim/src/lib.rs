//! A phone that speaks real ADB over TCP with a Pinduoduo model in it, for the demo, for training
//! and for tests. The stock `adb` client works against it.
//!
//! It never talks to a network beyond its listening sockets. It counts the orders and the payments that would have been made
//! ([`Sim::orders_created`], [`Sim::payments_accepted`]), and nothing else comes of them.

mod adb;
mod agent;
mod catalogue;
mod clock;
mod config;
mod dice;
mod faults;
mod http;
mod model;
mod phone;
mod render;
mod replay;
mod scenario;
mod shell;
mod view;
mod web;
mod xml;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub use catalogue::{Abandon, Art, Catalogue, CatalogueError, ChipLayout, ChipStyle, DimValue, Dimension, DimensionKind, Goods, Offer};
pub use config::{Auth, JournalEntry, JournalKind, SimConfig};
pub use faults::{Fault, FaultPlan, FaultRule, Moment};
use phone::{Phone, until};
pub use replay::{Recording, ReplayError};
pub use scenario::{Behaviour, GoodsChoice, OrderBefore, OrderStatus, PopupRule, Scenario, ScenarioError, Trigger};
pub use web::Reach;

/// A running simulated phone. Dropping it ends it as [`Sim::stop`] does, without waiting.
#[derive(Debug)]
pub struct Sim {
    addr: SocketAddr,
    phone: Arc<Phone>,
    listening: JoinHandle<()>,
}

/// An order as the phone has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderMade {
    pub order_sn: String,
    pub goods_id: String,
    pub spec: String,
    pub quantity: u32,
    pub amount_cent: u64,
    pub status: OrderStatus,
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
        self.phone.with_model(|model| model.counts.orders)
    }

    /// Payments that would have been made: somebody touched the button of the payment layer, or ordered where no password is asked for.
    /// No program may ever leave this above 0.
    pub fn payments_accepted(&self) -> u32 {
        self.phone.with_model(|model| model.counts.payments)
    }

    /// How often a payment layer came up, or was skipped because no password is asked for.
    pub fn payments_opened(&self) -> u32 {
        self.phone.with_model(|model| model.counts.payments_opened)
    }

    /// What those payments would have cost, in fen.
    pub fn paid_cent(&self) -> u64 {
        self.phone.with_model(|model| model.counts.paid_cent)
    }

    /// Every order, those from before included, the oldest first.
    pub fn orders(&self) -> Vec<OrderMade> {
        self.phone.with_model(|model| {
            let made = |order: &model::Order| OrderMade {
                order_sn: order.sn.clone(),
                goods_id: model.catalogue.goods[order.goods].goods_id.clone(),
                spec: order.spec.clone(),
                quantity: order.quantity,
                amount_cent: order.amount_cent,
                status: order.status,
            };
            model.orders().iter().map(made).collect()
        })
    }

    pub fn set_fault(&self, fault: Fault) {
        self.phone.set_fault(fault);
    }

    pub fn clear_faults(&self) {
        self.phone.clear_faults();
    }

    /// Begins a schedule of faults in place of the one that ran.
    pub fn play(&self, plan: FaultPlan) {
        self.phone.play(plan);
    }

    /// Brings up a layer of `resources/phone-sim/popups.toml` at once; false when there is none of that name.
    pub fn raise_popup(&self, name: &str) -> bool {
        self.phone.raise(name)
    }

    /// Names of all layers.
    pub fn popups() -> Vec<&'static str> {
        model::popup_names().collect()
    }

    /// Answers the `Allow USB debugging?` prompt of [`Auth::AllowAny`] with `ask`.
    pub fn answer_key_prompt(&self, allow: bool) {
        self.phone.answer_key_prompt(allow);
    }

    /// `launcher`, `market`, `home`, `goods:<id>`, `sheet:<id>`, `confirm:<id>`, `abandon`, `payment`, `paid`, `captcha`, `risk`,
    /// `real_name`, `login`, `sold_out`, `removed`, `network_error`, `gallery`, `orders`, `order:<sn>`, `promo`, `popup:<name>`, `locked`,
    /// `screen_off` or `replay:<capture>`.
    pub fn screen_name(&self) -> String {
        self.phone.screen_name()
    }

    /// The screen as a PNG, 1080x2400 unless it lies on its side or a recording says otherwise.
    pub fn screenshot_png(&self) -> Vec<u8> {
        self.phone.screenshot()
    }

    /// Serves the page that shows the screen, with the control call; returns where.
    pub async fn serve_screen(&self, at: SocketAddr, reach: Reach) -> io::Result<SocketAddr> {
        web::start(self.phone.clone(), at, web::Serve::Screen, reach).await
    }

    /// Serves the control call alone; returns where.
    pub async fn serve_control(&self, at: SocketAddr, reach: Reach) -> io::Result<SocketAddr> {
        web::start(self.phone.clone(), at, web::Serve::Control, reach).await
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
