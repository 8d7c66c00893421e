//! Places and rectangles on the screen, in physical pixels.
//!
//! Arithmetic saturates: a dump may state any number, and none of them may panic or wrap.

use std::fmt;

/// A place on the screen, in physical pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    pub x: i32,
    pub y: i32,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.x, self.y)
    }
}

/// A rectangle in physical pixels; `right` and `bottom` are outside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl Bounds {
    pub fn new(left: i32, top: i32, right: i32, bottom: i32) -> Self {
        Self { left, top, right, bottom }
    }

    /// Pixels; 0 for a reversed rectangle.
    pub fn width(&self) -> i32 {
        self.right.saturating_sub(self.left).max(0)
    }

    /// Pixels; 0 for a reversed rectangle.
    pub fn height(&self) -> i32 {
        self.bottom.saturating_sub(self.top).max(0)
    }

    pub fn is_empty(&self) -> bool {
        self.width() == 0 || self.height() == 0
    }

    /// Pixels squared.
    pub fn area(&self) -> i64 {
        i64::from(self.width()) * i64::from(self.height())
    }

    pub fn center(&self) -> Point {
        let mid = |a: i32, b: i32| ((i64::from(a) + i64::from(b)) / 2) as i32;
        Point { x: mid(self.left, self.right), y: mid(self.top, self.bottom) }
    }

    pub fn contains(&self, point: Point) -> bool {
        point.x >= self.left && point.x < self.right && point.y >= self.top && point.y < self.bottom
    }

    /// The common part; empty when they do not meet.
    pub fn intersect(&self, other: &Bounds) -> Bounds {
        let meet = Bounds {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        if meet.is_empty() { Bounds::default() } else { meet }
    }

    /// Whether the two share at least one pixel.
    pub fn touches(&self, other: &Bounds) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Whether `other` lies inside, edges included. Nothing lies inside an empty rectangle.
    pub fn encloses(&self, other: &Bounds) -> bool {
        !self.is_empty() && other.left >= self.left && other.top >= self.top && other.right <= self.right && other.bottom <= self.bottom
    }

    /// The rectangle with `margin` pixels more on every side.
    #[must_use]
    pub fn grown(&self, margin: i32) -> Bounds {
        Bounds {
            left: self.left.saturating_sub(margin),
            top: self.top.saturating_sub(margin),
            right: self.right.saturating_add(margin),
            bottom: self.bottom.saturating_add(margin),
        }
    }

    /// Reads `[left,top][right,bottom]`.
    pub fn parse(text: &str) -> Option<Bounds> {
        let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
        let (first, second) = inner.split_once("][")?;
        let pair = |s: &str| -> Option<(i32, i32)> {
            let (x, y) = s.split_once(',')?;
            Some((x.trim().parse().ok()?, y.trim().parse().ok()?))
        };
        let (left, top) = pair(first)?;
        let (right, bottom) = pair(second)?;
        Some(Bounds { left, top, right, bottom })
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{}][{},{}]", self.left, self.top, self.right, self.bottom)
    }
}
