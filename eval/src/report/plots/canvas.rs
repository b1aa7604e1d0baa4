//! Marks in CSS pixels on plotters' SVG backend.
//!
//! The backend takes whole coordinates only, so it draws ten times larger than shown; curves stay
//! smooth.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Figure;
use super::ink::Ink;

const SCALE: f64 = 10.0;
/// Factor by which the backend divides font sizes.
const FONT_FACTOR: f64 = 1.24;

/// Horizontal position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Look of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub ink: Ink,
    pub size: f64,
    pub anchor: Anchor,
    pub bold: bool,
}

impl Type {
    pub(super) fn new(ink: Ink, anchor: Anchor) -> Self {
        Self { ink, size: 13.0, anchor, bold: false }
    }

    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// Approximate width of a text in pixels, good enough to keep room for it.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

type CanvasPoint = (f64, f64);

fn scaled(value: f64) -> i32 {
    (value * SCALE).round() as i32
}

fn at((x, y): CanvasPoint) -> (i32, i32) {
    (scaled(x), scaled(y))
}

impl Canvas<'_> {
    /// A figure of this size, described by `title`, with what `draw` draws.
    pub(super) fn figure(width: f64, height: f64, title: &str, draw: impl FnOnce(&Canvas<'_>)) -> Figure {
        let mut svg = String::new();
        let size = (scaled(width), scaled(height));
        let canvas =
            Canvas { area: SVGBackend::with_string(&mut svg, (size.0 as u32, size.1 as u32)).into_drawing_area() };
        draw(&canvas);
        // Dropping the last reference to the backend closes the document.
        drop(canvas);
        Figure::new(&svg, title, size.0, size.1)
    }

    pub(super) fn line(&self, points: &[CanvasPoint], ink: Ink, width: f64) {
        let style = ink.stand_in().stroke_width(scaled(width) as u32);
        self.put(&PathElement::new(points.iter().copied().map(at).collect::<Vec<_>>(), style));
    }

    pub(super) fn area(&self, points: &[CanvasPoint], ink: Ink, opacity: f64) {
        let style = ink.stand_in().mix(opacity).filled();
        self.put(&Polygon::new(points.iter().copied().map(at).collect::<Vec<_>>(), style));
    }

    pub(super) fn rect(&self, from: CanvasPoint, to: CanvasPoint, ink: Ink, opacity: f64) {
        self.put(&Rectangle::new([at(from), at(to)], ink.stand_in().mix(opacity).filled()));
    }

    pub(super) fn dot(&self, centre: CanvasPoint, radius: f64, ink: Ink) {
        self.put(&Circle::new(at(centre), scaled(radius), ink.stand_in().filled()));
    }

    /// Draws text with its vertical middle at the point.
    pub(super) fn text(&self, point: CanvasPoint, text: &str, kind: Type) {
        let horizontal = match kind.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let weight = if kind.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = ("sans-serif", kind.size * SCALE * FONT_FACTOR).into_font().style(weight);
        let color = kind.ink.stand_in();
        let style = TextStyle::from(font).color(&color).pos(Pos::new(horizontal, VPos::Center));
        self.put(&Text::new(text.to_owned(), at(point), style));
    }

    fn put<'e, E>(&self, element: &'e E)
    where
        &'e E: plotters::element::PointCollection<'e, (i32, i32)>,
        E: for<'b> plotters::element::Drawable<SVGBackend<'b>>,
    {
        self.area.draw(element).expect("drawing into a string cannot fail");
    }
}
