//! Paints the same tree the XML is written from, as a 1080x2400 PNG. It never moves a view: what
//! is painted stands exactly where the tree says. Rows are filled with memory copies, because this
//! crate is unoptimised in development builds.

mod art;
mod canvas;

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::model::{HEIGHT, WIDTH};
use crate::phone::Screen;
use crate::view::{Align, Label, Rect, View, Window, rect};
use canvas::Canvas;

const FONT: &[u8] = include_bytes!("../assets/NotoSansSC-subset.otf");

fn font() -> &'static FontRef<'static> {
    static PARSED: OnceLock<FontRef<'static>> = OnceLock::new();
    PARSED.get_or_init(|| FontRef::try_from_slice(FONT).expect("the embedded font is tested"))
}

/// PNG of the windows, bottom first; an empty list is a dark screen. On its side the page stands upright in the middle, as the tree says.
pub(crate) fn png(windows: &[Window], rotated: bool) -> Vec<u8> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    for window in windows {
        paint(&mut canvas, &window.root);
    }
    if !rotated {
        return encode(canvas.bytes(), WIDTH, HEIGHT);
    }
    let mut pixels = vec![0_u8; (WIDTH * HEIGHT * 3) as usize];
    for y in 0..WIDTH {
        for x in 0..HEIGHT {
            let (from_x, from_y) = crate::xml::from_side((x, y));
            if (0..WIDTH).contains(&from_x) && (0..HEIGHT).contains(&from_y) {
                let (from, to) = (((from_y * WIDTH + from_x) * 3) as usize, ((y * HEIGHT + x) * 3) as usize);
                pixels[to..to + 3].copy_from_slice(&canvas.bytes()[from..from + 3]);
            }
        }
    }
    encode(&pixels, HEIGHT, WIDTH)
}

/// A screen of one grey; 0 is what a secure window leaves.
pub(crate) fn blank(screen: Screen, grey: u8) -> Vec<u8> {
    encode(&vec![grey; (screen.width * screen.height * 3) as usize], screen.width, screen.height)
}

fn encode(pixels: &[u8], wide: i32, tall: i32) -> Vec<u8> {
    let mut out = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut out, CompressionType::Fast, FilterType::Up);
    let written = encoder.write_image(pixels, wide as u32, tall as u32, ExtendedColorType::Rgb8);
    if let Err(error) = written {
        tracing::error!(%error, "could not encode the screen");
    }
    out
}

fn paint(canvas: &mut Canvas, view: &View) {
    let style = &view.paint;
    if style.scrim {
        canvas.darken();
    }
    if let Some(fill) = style.fill {
        canvas.round(view.frame, style.radius, fill, view.bounds);
    }
    if let Some((what, color)) = style.art {
        art::draw(canvas, what, color, view.frame, style.radius, view.bounds);
    }
    if let Some((color, width)) = style.border {
        canvas.ring(view.frame, style.radius, width, color, view.bounds);
    }
    if let Some(label) = &style.label {
        write(canvas, label, view.frame, view.bounds);
    }
    for child in &view.children {
        paint(canvas, child);
    }
}

fn write(canvas: &mut Canvas, label: &Label, at: Rect, clip: Rect) {
    let font = font();
    let em = font.units_per_em().unwrap_or(1000.0);
    let scale = PxScale::from(label.size * font.height_unscaled() / em);
    let scaled = font.as_scaled(scale);
    let advance = |one: char| scaled.h_advance(font.glyph_id(one));
    let room = at.width() as f32;
    let mut lines = wrap(&label.text, room, label.lines.max(1) as usize, &advance);
    let line_height = label.size * 1.3;
    let mut top = at.t as f32 + (at.height() as f32 - line_height * lines.len() as f32) / 2.0;
    for line in lines.drain(..) {
        let wide: f32 = line.chars().map(&advance).sum();
        let mut x = match label.align {
            Align::Left => at.l as f32,
            Align::Center => at.l as f32 + ((room - wide) / 2.0).max(0.0),
            Align::Right => at.r as f32 - wide,
        };
        // The em box is centred in the line; the baseline sits at 0.88 em in this face.
        let baseline = top + (line_height - label.size) / 2.0 + label.size * 0.88;
        for one in line.chars() {
            let id = font.glyph_id(one);
            if id.0 != 0 {
                let passes = if label.bold { 2 } else { 1 };
                for pass in 0..passes {
                    let shift = pass as f32 * (label.size / 44.0);
                    let glyph = id.with_scale_and_position(scale, ab_glyph::point(x + shift, baseline));
                    if let Some(outline) = font.outline_glyph(glyph) {
                        let corner = outline.px_bounds().min;
                        let (left, up) = (corner.x as i32, corner.y as i32);
                        outline.draw(|dx, dy, cover| {
                            canvas.blend(left + dx as i32, up + dy as i32, label.color, cover, clip);
                        });
                    }
                }
            }
            x += advance(one);
        }
        top += line_height;
    }
}

/// Breaks at any character, as CJK text may; what does not fit ends in an ellipsis.
fn wrap(says: &str, room: f32, most: usize, advance: &impl Fn(char) -> f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0.0;
    for one in says.chars() {
        let wide = advance(one);
        if one == '\n' || used + wide > room + 1.0 {
            if lines.len() == most {
                let last = lines.len() - 1;
                if one != '\n' && lines[last].chars().count() > 1 {
                    lines[last].pop();
                    lines[last].push('…');
                }
                return lines;
            }
            lines.push(String::new());
            used = 0.0;
            if one == '\n' {
                continue;
            }
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push(one);
        }
    }
    lines
}

/// Whether the embedded face can draw it.
#[cfg(test)]
pub(crate) fn has_glyph(one: char) -> bool {
    font().glyph_id(one).0 != 0
}

pub(crate) fn inner(at: Rect, left: f32, top: f32, right: f32, bottom: f32) -> Rect {
    let (wide, tall) = (at.width() as f32, at.height() as f32);
    rect(at.l + (wide * left) as i32, at.t + (tall * top) as i32, at.l + (wide * right) as i32, at.t + (tall * bottom) as i32)
}
