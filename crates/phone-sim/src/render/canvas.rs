//! A plain RGB picture with the few shapes the pages need. It knows no view.

use crate::view::{Rect, Rgb, rect};

pub(crate) struct Canvas {
    wide: i32,
    tall: i32,
    pixels: Vec<u8>,
    row: Vec<u8>,
}

impl Canvas {
    pub(crate) fn new(wide: i32, tall: i32) -> Self {
        let size = (wide * tall * 3) as usize;
        Self { wide, tall, pixels: vec![0; size], row: vec![0; (wide * 3) as usize] }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.pixels
    }

    /// Halves everything painted so far.
    pub(crate) fn darken(&mut self) {
        // A table and an iterator keep this quick even unoptimised.
        let table: Vec<u8> = (0..=255_u16).map(|value| (value * 9 / 20) as u8).collect();
        for byte in &mut self.pixels {
            *byte = table[usize::from(*byte)];
        }
    }

    fn load(&mut self, color: Rgb, pixels: i32) {
        let pixels = pixels.clamp(0, self.wide) as usize;
        if pixels == 0 {
            return;
        }
        self.row[..3].copy_from_slice(&color);
        let mut filled = 1;
        while filled < pixels {
            let more = filled.min(pixels - filled);
            self.row.copy_within(0..more * 3, filled * 3);
            filled += more;
        }
    }

    /// Copies the loaded colour into one row, from `left` (inclusive) to `right`.
    fn span(&mut self, y: i32, left: i32, right: i32, clip: Rect) {
        let (left, right) = (left.max(clip.l).max(0), right.min(clip.r).min(self.wide));
        if y < clip.t.max(0) || y >= clip.b.min(self.tall) || left >= right {
            return;
        }
        let start = ((y * self.wide + left) * 3) as usize;
        let bytes = ((right - left) * 3) as usize;
        self.pixels[start..start + bytes].copy_from_slice(&self.row[..bytes]);
    }

    pub(crate) fn blend(&mut self, x: i32, y: i32, color: Rgb, cover: f32, clip: Rect) {
        if !clip.contains(x, y) || x < 0 || y < 0 || x >= self.wide || y >= self.tall {
            return;
        }
        let at = ((y * self.wide + x) * 3) as usize;
        let part = (cover.clamp(0.0, 1.0) * 256.0) as i32;
        for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip(color) {
            let old = i32::from(*pixel);
            *pixel = (old + (((i32::from(ink) - old) * part) >> 8)) as u8;
        }
    }

    /// A filled rectangle with rounded, smooth corners.
    pub(crate) fn round(&mut self, at: Rect, radius: i32, color: Rgb, clip: Rect) {
        self.load(color, at.width());
        let radius = radius.min(at.width() / 2).min(at.height() / 2).max(0);
        for y in at.t.max(clip.t)..at.b.min(clip.b) {
            let inset = corner(at, radius, y);
            let whole = inset.ceil() as i32;
            self.span(y, at.l + whole, at.r - whole, clip);
            let cover = whole as f32 - inset;
            if cover > 0.0 {
                self.blend(at.l + whole - 1, y, color, cover, clip);
                self.blend(at.r - whole, y, color, cover, clip);
            }
        }
    }

    /// The outline of a rounded rectangle, `width` pixels inwards.
    pub(crate) fn ring(&mut self, at: Rect, radius: i32, width: i32, color: Rgb, clip: Rect) {
        self.load(color, at.width());
        let inside = at.inset(width);
        let radius = radius.min(at.width() / 2).min(at.height() / 2).max(0);
        for y in at.t.max(clip.t)..at.b.min(clip.b) {
            let outer = corner(at, radius, y);
            let whole = outer.ceil() as i32;
            let (left, right) = (at.l + whole, at.r - whole);
            if y < inside.t || y >= inside.b {
                self.span(y, left, right, clip);
            } else {
                let inner = corner(inside, (radius - width).max(0), y).round() as i32;
                self.span(y, left, inside.l + inner, clip);
                self.span(y, inside.r - inner, right, clip);
            }
            let cover = whole as f32 - outer;
            if cover > 0.0 {
                self.blend(at.l + whole - 1, y, color, cover, clip);
                self.blend(at.r - whole, y, color, cover, clip);
            }
        }
    }

    /// A rounded rectangle running from one colour at the top to another at the bottom.
    pub(crate) fn gradient(&mut self, at: Rect, radius: i32, from: Rgb, to: Rgb, clip: Rect) {
        const BAND: i32 = 6;
        let tall = at.height().max(1);
        let radius = radius.min(at.width() / 2).min(tall / 2).max(0);
        let mut y = at.t;
        while y < at.b {
            let part = (y - at.t) * 256 / tall;
            let mix = |at: usize| (i32::from(from[at]) + (i32::from(to[at]) - i32::from(from[at])) * part / 256) as u8;
            let color = [mix(0), mix(1), mix(2)];
            self.load(color, at.width());
            for line in y..(y + BAND).min(at.b) {
                let inset = corner(at, radius, line).ceil() as i32;
                self.span(line, at.l + inset, at.r - inset, clip);
            }
            y += BAND;
        }
    }

    pub(crate) fn disc(&mut self, x: i32, y: i32, radius: i32, color: Rgb, clip: Rect) {
        self.round(rect(x - radius, y - radius, x + radius, y + radius), radius, color, clip);
    }
}

/// How far a rounded rectangle's edge is indented in row `y`.
fn corner(at: Rect, radius: i32, y: i32) -> f32 {
    let down = if y < at.t + radius {
        at.t + radius - y
    } else if y >= at.b - radius {
        y - (at.b - radius) + 1
    } else {
        return 0.0;
    } as f32
        - 0.5;
    let radius = radius as f32;
    radius - (radius * radius - down * down).max(0.0).sqrt()
}
