//! Simple drawings that stand for product photographs. Purely decorative.

use crate::catalogue::Art;
use crate::render::canvas::Canvas;
use crate::render::inner;
use crate::view::{Rect, Rgb};

pub(crate) fn draw(canvas: &mut Canvas, what: Art, color: Rgb, at: Rect, radius: i32, clip: Rect) {
    let soft = mix(color, [255, 255, 255], 210);
    canvas.gradient(at, radius, mix(color, [255, 255, 255], 232), soft, clip);
    let dark = mix(color, [0, 0, 0], 60);
    let light = mix(color, [255, 255, 255], 90);
    let size = at.width().min(at.height());
    let part = |share: f32| (size as f32 * share) as i32;
    // A soft shadow on the ground under every product.
    canvas.round(inner(at, 0.22, 0.80, 0.78, 0.86), part(0.03), mix(soft, [0, 0, 0], 24), clip);
    let mut block = |left: f32, top: f32, right: f32, bottom: f32, round: f32, ink: Rgb| {
        canvas.round(inner(at, left, top, right, bottom), part(round), ink, clip);
    };
    match what {
        Art::Shirt => {
            block(0.18, 0.28, 0.40, 0.50, 0.05, dark);
            block(0.60, 0.28, 0.82, 0.50, 0.05, dark);
            block(0.30, 0.24, 0.70, 0.82, 0.05, color);
            block(0.42, 0.20, 0.58, 0.32, 0.06, soft);
        }
        Art::Bottle => {
            block(0.44, 0.14, 0.56, 0.26, 0.02, dark);
            block(0.36, 0.26, 0.64, 0.83, 0.08, color);
            block(0.40, 0.44, 0.60, 0.66, 0.02, [250, 250, 248]);
            block(0.43, 0.50, 0.57, 0.53, 0.01, dark);
            block(0.43, 0.56, 0.53, 0.58, 0.01, light);
        }
        Art::Box => {
            block(0.22, 0.36, 0.78, 0.83, 0.04, color);
            block(0.18, 0.28, 0.82, 0.42, 0.04, dark);
            block(0.44, 0.28, 0.56, 0.83, 0.01, light);
        }
        Art::Cup => {
            block(0.60, 0.40, 0.80, 0.68, 0.10, dark);
            block(0.64, 0.45, 0.74, 0.63, 0.07, soft);
            block(0.28, 0.30, 0.66, 0.83, 0.08, color);
            block(0.28, 0.28, 0.66, 0.36, 0.04, light);
        }
        Art::Cable => {
            block(0.20, 0.30, 0.80, 0.80, 0.25, color);
            block(0.27, 0.37, 0.73, 0.73, 0.19, soft);
            block(0.34, 0.44, 0.66, 0.66, 0.12, color);
            block(0.41, 0.51, 0.59, 0.60, 0.05, soft);
            block(0.14, 0.50, 0.28, 0.60, 0.02, dark);
        }
        Art::Towel => {
            block(0.22, 0.64, 0.78, 0.82, 0.07, dark);
            block(0.24, 0.47, 0.76, 0.65, 0.07, color);
            block(0.26, 0.30, 0.74, 0.48, 0.07, light);
            block(0.26, 0.38, 0.74, 0.40, 0.01, color);
        }
        Art::Lamp => {
            block(0.47, 0.44, 0.53, 0.80, 0.01, dark);
            block(0.34, 0.78, 0.66, 0.83, 0.02, dark);
            block(0.30, 0.20, 0.70, 0.46, 0.12, color);
            block(0.36, 0.42, 0.64, 0.47, 0.02, [255, 236, 176]);
        }
        Art::Fruit => {
            let apples = [(0.36, 0.62), (0.62, 0.64), (0.49, 0.46)];
            for (x, y) in apples {
                let spot = inner(at, x, y, x, y);
                canvas.disc(spot.l, spot.t, part(0.17), [206, 58, 52], clip);
                canvas.disc(spot.l - part(0.05), spot.t - part(0.06), part(0.04), [238, 138, 120], clip);
                canvas.round(inner(at, x - 0.01, y - 0.22, x + 0.015, y - 0.13), part(0.01), [104, 74, 44], clip);
            }
        }
    }
}

/// `part` of 256 towards the second colour.
fn mix(from: Rgb, to: Rgb, part: i32) -> Rgb {
    let one = |at: usize| (i32::from(from[at]) + (i32::from(to[at]) - i32::from(from[at])) * part / 256) as u8;
    [one(0), one(1), one(2)]
}
