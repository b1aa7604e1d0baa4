//! The rooms of `goodput-eval` stand in an order.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use xtask::source::{room_uses, root};

/// Rooms of `goodput-eval` from the ground up: a room uses earlier rooms only.
const ORDER: [&str; 8] = ["stats", "metrics", "run", "entries", "report", "sweep", "studies", "reproduce"];

#[test]
fn rooms_of_eval_use_earlier_rooms_only() {
    let place = |room: &str| ORDER.iter().position(|known| *known == room);
    let mut offences = Vec::new();
    for (room, used) in room_uses(&root().join("eval/src")).unwrap() {
        let Some(at) = place(&room) else {
            offences.push(format!("room {room} has no place in ORDER"));
            continue;
        };
        for (other, files) in used {
            if place(&other).is_none_or(|other| other >= at) {
                offences.push(format!("{room} uses {other}, which does not come before it: {files:?}"));
            }
        }
    }
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}
