//! The worst phone: every fault the simulated phone can play, at the moments and on the screens where it hurts, and random schedules of
//! them. Whatever happens, a collect run ends in the truth or in a typed error, in time, and orders nothing.

mod rig;
mod rows;
mod schedules;
mod table;
mod truth;

/// Every word a collect run may end with; the interface has a sentence for each.
const CODES: &[&str] = &[
    "ACCESSIBILITY_TAKEN",
    "ADB_UNREACHABLE",
    "BAD_ANSWER",
    "BAD_SCREEN",
    "DATA_INVALID",
    "DEVICE_GONE",
    "DUMP_FAILED",
    "GOODS_REMOVED",
    "GOODS_SOLD_OUT",
    "GUARD_REFUSED",
    "INPUT_REFUSED",
    "LOGIN_WALL",
    "NETWORK_PAGE",
    "NEVER_IDLE",
    "NO_SKU_ENTRY",
    "PAGE_UNREADABLE",
    "PDD_MISSING",
    "RISK_WALL",
    "SHEET_LOST",
    "SHEET_UNREADABLE",
    "SHEET_UNSTEADY",
    "STEP_TIMEOUT",
    "TIMEOUT",
    "UNAUTHORIZED",
    "UNKNOWN_SCREEN",
    "WRONG_GOODS",
];
