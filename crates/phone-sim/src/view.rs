//! The declarative tree a page is made of. One tree gives the UI XML, the picture and the place a
//! finger lands, so the three can never disagree. It holds no page's meaning beyond [`Hit`].

use crate::catalogue::Art;
use crate::model::Hit;

pub(crate) const FRAME: &str = "android.widget.FrameLayout";
pub(crate) const LINEAR: &str = "android.widget.LinearLayout";
pub(crate) const RELATIVE: &str = "android.widget.RelativeLayout";
pub(crate) const GROUP: &str = "android.view.ViewGroup";
pub(crate) const PLAIN: &str = "android.view.View";
pub(crate) const TEXT: &str = "android.widget.TextView";
pub(crate) const IMAGE: &str = "android.widget.ImageView";
pub(crate) const EDIT: &str = "android.widget.EditText";
pub(crate) const BUTTON: &str = "android.widget.Button";
pub(crate) const SWITCHER: &str = "android.widget.ViewSwitcher";
pub(crate) const RECYCLER: &str = "android.support.v7.widget.RecyclerView";

pub(crate) const WEB: &str = "android.webkit.WebView";
pub(crate) const WEB_IMAGE: &str = "android.widget.Image";

/// The obfuscated id nearly every Pinduoduo view carries.
pub(crate) const PDD_ID: &str = "com.xunmeng.pinduoduo:id/pdd";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) l: i32,
    pub(crate) t: i32,
    pub(crate) r: i32,
    pub(crate) b: i32,
}

pub(crate) const fn rect(l: i32, t: i32, r: i32, b: i32) -> Rect {
    Rect { l, t, r, b }
}

impl Rect {
    pub(crate) fn width(self) -> i32 {
        self.r - self.l
    }
    pub(crate) fn height(self) -> i32 {
        self.b - self.t
    }
    pub(crate) fn contains(self, x: i32, y: i32) -> bool {
        x >= self.l && x < self.r && y >= self.t && y < self.b
    }
    #[cfg(test)]
    pub(crate) fn centre(self) -> (i32, i32) {
        ((self.l + self.r) / 2, (self.t + self.b) / 2)
    }
    pub(crate) fn is_empty(self) -> bool {
        self.l >= self.r || self.t >= self.b
    }
    pub(crate) fn intersect(self, other: Rect) -> Rect {
        rect(self.l.max(other.l), self.t.max(other.t), self.r.min(other.r), self.b.min(other.b))
    }
    pub(crate) fn shifted(self, dx: i32, dy: i32) -> Rect {
        rect(self.l + dx, self.t + dy, self.r + dx, self.b + dy)
    }
    pub(crate) fn inset(self, by: i32) -> Rect {
        rect(self.l + by, self.t + by, self.r - by, self.b - by)
    }
}

pub(crate) type Rgb = [u8; 3];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) size: f32,
    pub(crate) color: Rgb,
    pub(crate) align: Align,
    pub(crate) bold: bool,
    pub(crate) lines: u32,
}

/// What a view looks like; nothing of it reaches the XML.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paint {
    pub(crate) fill: Option<Rgb>,
    pub(crate) radius: i32,
    pub(crate) border: Option<(Rgb, i32)>,
    pub(crate) label: Option<Label>,
    /// A picture: what it shows and its colour.
    pub(crate) art: Option<(Art, Rgb)>,
    /// Darkens everything painted before, as a dialog's scrim does.
    pub(crate) scrim: bool,
}

/// What moves when a finger swipes over a view. Independent of the XML's `scrollable`, which real
/// pages get wrong (facts: the outer list says false though it scrolls).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    Page,
    Panel,
    /// Sideways list of one dimension.
    Chips(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) class: &'static str,
    pub(crate) id: &'static str,
    pub(crate) text: String,
    pub(crate) desc: String,
    pub(crate) hint: String,
    /// Where it would be without clipping; the picture is laid out in it.
    pub(crate) frame: Rect,
    /// What of it is on screen; the XML and the finger see this.
    pub(crate) bounds: Rect,
    pub(crate) clickable: bool,
    pub(crate) long_clickable: bool,
    pub(crate) selected: bool,
    pub(crate) scrollable: bool,
    pub(crate) order: Option<u32>,
    /// Ignores accessibility clicks; only a finger works, as with buttons in a WebView.
    pub(crate) deaf: bool,
    /// Painted only: not in the XML, not touchable.
    pub(crate) ghost: bool,
    pub(crate) paint: Paint,
    pub(crate) hit: Option<Hit>,
    pub(crate) scroll: Option<Scroll>,
    pub(crate) children: Vec<View>,
}

pub(crate) fn view(class: &'static str, at: Rect) -> View {
    View {
        class,
        id: "",
        text: String::new(),
        desc: String::new(),
        hint: String::new(),
        frame: at,
        bounds: at,
        clickable: false,
        long_clickable: false,
        selected: false,
        scrollable: false,
        order: None,
        deaf: false,
        ghost: false,
        paint: Paint::default(),
        hit: None,
        scroll: None,
        children: Vec::new(),
    }
}

/// A painted-only rectangle.
pub(crate) fn ghost(at: Rect) -> View {
    let mut made = view(PLAIN, at);
    made.ghost = true;
    made
}

/// A `TextView` that says and shows the same.
pub(crate) fn text(at: Rect, says: impl Into<String>, size: f32, color: Rgb) -> View {
    view(TEXT, at).says(says, size, color)
}

impl View {
    pub(crate) fn id(mut self, id: &'static str) -> Self {
        self.id = id;
        self
    }
    pub(crate) fn pdd(self) -> Self {
        self.id(PDD_ID)
    }
    pub(crate) fn desc(mut self, desc: impl Into<String>) -> Self {
        self.desc = desc.into();
        self
    }
    pub(crate) fn order(mut self, order: u32) -> Self {
        self.order = Some(order);
        self
    }
    pub(crate) fn click(mut self, hit: Hit) -> Self {
        self.clickable = true;
        self.hit = Some(hit);
        self
    }
    pub(crate) fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }
    pub(crate) fn scrolls(mut self, scroll: Scroll) -> Self {
        self.scroll = Some(scroll);
        self
    }
    pub(crate) fn select(mut self, selected: bool) -> Self {
        self.selected = selected;
        self
    }
    pub(crate) fn child(mut self, child: View) -> Self {
        self.children.push(child);
        self
    }
    pub(crate) fn all(mut self, children: impl IntoIterator<Item = View>) -> Self {
        self.children.extend(children);
        self
    }
    pub(crate) fn fill(mut self, color: Rgb) -> Self {
        self.paint.fill = Some(color);
        self
    }
    pub(crate) fn round(mut self, radius: i32) -> Self {
        self.paint.radius = radius;
        self
    }
    pub(crate) fn border(mut self, color: Rgb, width: i32) -> Self {
        self.paint.border = Some((color, width));
        self
    }
    pub(crate) fn art(mut self, art: Art, color: Rgb) -> Self {
        self.paint.art = Some((art, color));
        self
    }
    /// Text in the tree and on the picture.
    pub(crate) fn says(mut self, says: impl Into<String>, size: f32, color: Rgb) -> Self {
        self.text = says.into();
        let shown = self.text.clone();
        self.shows(shown, size, color)
    }
    /// Text on the picture only, as custom-drawn views have it.
    pub(crate) fn shows(mut self, says: impl Into<String>, size: f32, color: Rgb) -> Self {
        self.paint.label = Some(Label { text: says.into(), size, color, align: Align::Left, bold: false, lines: 1 });
        self
    }
    pub(crate) fn align(mut self, align: Align) -> Self {
        if let Some(label) = &mut self.paint.label {
            label.align = align;
        }
        self
    }
    pub(crate) fn center(self) -> Self {
        self.align(Align::Center)
    }
    pub(crate) fn bold(mut self) -> Self {
        if let Some(label) = &mut self.paint.label {
            label.bold = true;
        }
        self
    }
    pub(crate) fn lines(mut self, lines: u32) -> Self {
        if let Some(label) = &mut self.paint.label {
            label.lines = lines;
        }
        self
    }

    /// Moves the view and everything in it.
    pub(crate) fn moved(mut self, dx: i32, dy: i32) -> Self {
        self.frame = self.frame.shifted(dx, dy);
        self.bounds = self.bounds.shifted(dx, dy);
        self.children = self.children.into_iter().map(|child| child.moved(dx, dy)).collect();
        self
    }

    /// Cuts to a viewport; `None` when nothing of it is left. A clipped chip loses the children
    /// that are outside, as on a phone.
    pub(crate) fn clipped(mut self, to: Rect) -> Option<Self> {
        self.bounds = self.bounds.intersect(to);
        if self.bounds.is_empty() {
            return None;
        }
        self.children = self.children.into_iter().filter_map(|child| child.clipped(to)).collect();
        Some(self)
    }

    /// Turns a whole page into backdrop: still painted, no longer there.
    pub(crate) fn ghosted(mut self) -> Self {
        self.ghost = true;
        self.hit = None;
        self.clickable = false;
        self.scroll = None;
        self.children = self.children.into_iter().map(View::ghosted).collect();
        self
    }

    /// The view a tap at the point goes to: topmost first, deepest clickable.
    pub(crate) fn touched(&self, x: i32, y: i32) -> Option<&View> {
        if self.ghost || !self.bounds.contains(x, y) {
            return None;
        }
        self.children.iter().rev().find_map(|child| child.touched(x, y)).or(if self.clickable { Some(self) } else { None })
    }

    /// The innermost thing a swipe starting at the point moves.
    pub(crate) fn scroller(&self, x: i32, y: i32, sideways: bool) -> Option<Scroll> {
        if self.ghost || !self.bounds.contains(x, y) {
            return None;
        }
        let own = self.scroll.filter(|scroll| match scroll {
            Scroll::Page | Scroll::Panel => !sideways,
            Scroll::Chips(_) => sideways,
        });
        self.children.iter().rev().find_map(|child| child.scroller(x, y, sideways)).or(own)
    }

    /// Own label, or the first label below: what a person would call this view.
    pub(crate) fn caption(&self) -> String {
        if !self.text.is_empty() {
            return self.text.clone();
        }
        if !self.desc.is_empty() {
            return self.desc.clone();
        }
        let below = self.children.iter().filter(|child| !child.ghost).map(View::caption);
        below.into_iter().find(|caption| !caption.is_empty()).unwrap_or_default()
    }
}

/// Rough width of a line in pixels: a hanzi is one em, the rest about half.
pub(crate) fn text_width(says: &str, size: f32) -> i32 {
    let ems: f32 = says.chars().map(|one| if one.is_ascii() { 0.56 } else { 1.0 }).sum();
    (ems * size).ceil() as i32
}

/// One window of one package; a dump holds the active one.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) package: &'static str,
    pub(crate) root: View,
}
