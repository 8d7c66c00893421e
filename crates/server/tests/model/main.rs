//! A model of the server's rules, checked breadth first over lossy networks and crashing clients, and the proof that the real server follows
//! the same rules. See `docs/model.md`.

mod agree;
mod checks;
mod client;
mod judge;
#[path = "../server/world.rs"]
#[expect(dead_code, reason = "the tests of the server use the rest of these helpers")]
mod real;
mod setups;
mod spec;
mod world;
