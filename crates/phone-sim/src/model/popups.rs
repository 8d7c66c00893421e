//! Layers over a page, as `resources/phone-sim/popups.toml` describes them. It draws them and knows which button closes; when one comes
//! up is the scenario's business.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::model::parts::{FADED, GREY, INK, RED, WHITE, gesture_pill, window};
use crate::model::{HEIGHT, Hit, PDD, WIDTH};
use crate::view::{BUTTON, FRAME, GROUP, IMAGE, LINEAR, Rect, View, ghost, rect, text, view};

const TEXT: &str = include_str!("../../../../resources/phone-sim/popups.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    popups: Vec<Popup>,
}

/// One kind of layer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Popup {
    pub(crate) name: String,
    pub(crate) window: Own,
    #[serde(default = "pdd")]
    pub(crate) package: String,
    #[serde(default = "page_activity")]
    pub(crate) activity: String,
    card: [i32; 4],
    lines: Vec<String>,
    pub(crate) buttons: Vec<Button>,
    #[serde(default)]
    cross: Cross,
    /// BACK closes it.
    pub(crate) back: bool,
}

fn pdd() -> String {
    PDD.into()
}

fn page_activity() -> String {
    "com.xunmeng.pinduoduo.activity.NewPageActivity".into()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Button {
    text: String,
    pub(crate) does: Does,
    #[serde(default)]
    bare: bool,
    at: Option<[i32; 4]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Own {
    Own,
    Same,
}

/// What a touch on a button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Does {
    Close,
    Nothing,
    Promo,
    Market,
    Home,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cross {
    #[default]
    None,
    Corner,
    Below,
}

fn all() -> &'static [Popup] {
    static PARSED: OnceLock<Vec<Popup>> = OnceLock::new();
    PARSED.get_or_init(|| toml::from_str::<File>(TEXT).expect("the shipped layers are tested").popups)
}

/// The layer of that name.
pub(crate) fn popup(name: &str) -> Option<&'static Popup> {
    all().iter().find(|one| one.name == name)
}

/// Names of all layers.
pub(crate) fn popup_names() -> impl Iterator<Item = &'static str> {
    all().iter().map(|one| one.name.as_str())
}

impl Popup {
    /// A window of its own, the page below only painted; or the page with the layer in it.
    pub(crate) fn over(&self, below: View) -> View {
        match self.window {
            Own::Own => {
                let mut scrim = ghost(rect(0, 0, WIDTH, HEIGHT));
                scrim.paint.scrim = true;
                window("", [below.ghosted(), scrim, self.layer(), gesture_pill()])
            }
            Own::Same => {
                let mut whole = below;
                let mut scrim = ghost(rect(0, 0, WIDTH, HEIGHT));
                scrim.paint.scrim = true;
                whole.children.push(scrim);
                whole.children.push(self.layer());
                whole
            }
        }
    }

    fn layer(&self) -> View {
        let [l, t, r, b] = self.card;
        let card = rect(l, t, r, b);
        let mut made = view(GROUP, card).fill(WHITE).round(32).click(Hit::Nothing).order(1);
        // The card itself takes touches so that nothing below gets them, but says nothing.
        made.clickable = false;
        let mut y = t + 90;
        for (at, line) in self.lines.iter().enumerate() {
            let (size, ink) = if at == 0 { (54.0, INK) } else { (42.0, GREY) };
            made = made.child(text(rect(l + 40, y, r - 40, y + 84), line, size, ink).center().lines(2));
            y += 110;
        }
        let mut beside = Vec::new();
        let many = self.buttons.len() as i32;
        for (at, button) in self.buttons.iter().enumerate() {
            let spot = match button.at {
                Some([l, t, r, b]) => rect(l, t, r, b),
                None => {
                    let top = b - 60 - (many - at as i32) * 150;
                    rect(l + 90, top, r - 90, top + 120)
                }
            };
            let drawn = button.view(at, spot);
            // A finger finds only what lies inside its parent.
            if card.contains(spot.l, spot.t) && card.contains(spot.r - 1, spot.b - 1) {
                made = made.child(drawn);
            } else {
                beside.push(drawn);
            }
        }
        let corner = match self.cross {
            Cross::None => None,
            Cross::Corner => Some(rect(r - 100, t + 10, r - 14, t + 96)),
            Cross::Below => Some(rect(WIDTH / 2 - 50, b + 40, WIDTH / 2 + 50, b + 140)),
        };
        if let Some(at) = corner {
            let drawn = view(IMAGE, at).click(Hit::PopupCross).shows("×", 60.0, FADED).center();
            if card.contains(at.l, at.t) { made.children.push(drawn) } else { beside.push(drawn) }
        }
        let mut shield = view(FRAME, rect(0, 0, WIDTH, HEIGHT)).id(if self.package == PDD { crate::view::PDD_ID } else { "" });
        shield.clickable = self.window == Own::Same;
        shield.hit = Some(Hit::Nothing);
        shield.child(made).all(beside)
    }
}

impl Button {
    fn view(&self, at: usize, spot: Rect) -> View {
        let hit = Hit::PopupButton(at);
        if self.bare {
            return view(IMAGE, spot).desc(&self.text).click(hit).fill([120, 120, 120]).round(60).shows("×", 70.0, WHITE).center();
        }
        if at == 0 && self.at.is_none() {
            return view(BUTTON, spot).click(hit).fill(RED).round(60).says(&self.text, 48.0, WHITE).center();
        }
        // Real ones put the text in a child that is not clickable itself.
        view(LINEAR, spot).click(hit).child(text(spot, &self.text, 42.0, GREY).center())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_can_be_left() {
        assert!(all().len() >= 12, "the issue names this many layers and more");
        for one in all() {
            let closes = one.buttons.iter().any(|button| button.does == Does::Close) || one.cross != Cross::None || one.back;
            assert!(closes, "{} must have a way out that a careful reader can take", one.name);
            assert_eq!(popup_names().filter(|name| *name == one.name).count(), 1, "{} has its name alone", one.name);
        }
    }
}
