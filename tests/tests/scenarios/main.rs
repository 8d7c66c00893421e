//! The product as its people use it: real client processes, a real server over sockets, the simulated phone over real ADB.

#![expect(clippy::print_stderr, reason = "a failing scenario shows what the programs said")]

mod bad_input;
mod codes;
mod crash;
mod desk;
mod lease;
mod main_job;
mod secrets;
mod stop;
