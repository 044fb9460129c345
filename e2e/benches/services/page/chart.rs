//! Bars in groups, as an SVG.

use std::path::Path;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, IntoDrawingArea, IntoFont, Palette, Palette99, PathElement, Rectangle,
    SVGBackend, Text, WHITE,
};

/// What is drawn.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Names of the bars of each group.
    pub(super) bars: Vec<String>,
    pub(super) groups: Vec<Group>,
}

pub(super) struct Group {
    pub(super) name: String,
    /// What is not there is not drawn.
    pub(super) values: Vec<Option<f64>>,
    /// A line across the group, where there is something to reach.
    pub(super) target: Option<f64>,
}

const SIZE: (u32, u32) = (960, 420);
/// Of a group of width 1, beside the next one.
const GAP: f64 = 0.2;

impl Chart {
    pub(super) fn draw(&self, file: &Path) {
        let values = self.groups.iter().flat_map(|group| group.values.iter().flatten().chain(&group.target));
        let top = values.copied().reduce(f64::max).unwrap_or(1.0) * 1.15;
        let area = SVGBackend::new(file, SIZE).into_drawing_area();
        area.fill(&WHITE).unwrap();
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{} ({})", self.title, self.unit), ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..self.groups.len() as f64, 0.0..top)
            .unwrap();
        let mut mesh = chart.configure_mesh();
        // Each label is below the middle of its group.
        let name = |x: &f64| match (x.fract() - 0.5).abs() < 0.01 {
            true => self.groups.get(*x as usize).map(|group| group.name.clone()).unwrap_or_default(),
            false => String::new(),
        };
        mesh.disable_x_mesh().x_labels(self.groups.len() * 2 + 1).x_label_formatter(&name).draw().unwrap();
        for (at, bar) in self.bars.iter().enumerate() {
            let color = Palette99::pick(at).to_rgba();
            let rectangles = self.groups.iter().enumerate().filter_map(|(group, of)| {
                let value = (*of.values.get(at)?)?;
                let width = (1.0 - GAP) / self.bars.len() as f64;
                let left = group as f64 + GAP / 2.0 + width * at as f64;
                Some(Rectangle::new([(left, 0.0), (left + width * 0.95, value)], color.filled()))
            });
            let drawn = chart.draw_series(rectangles).unwrap();
            drawn
                .label(bar.clone())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        }
        for (at, group) in self.groups.iter().enumerate() {
            let Some(target) = group.target else { continue };
            let (left, right) = (at as f64 + GAP / 4.0, at as f64 + 1.0 - GAP / 4.0);
            let said = Text::new("to reach", (left, target), ("sans-serif", 11).into_font());
            chart.draw_series([PathElement::new([(left, target), (right, target)], BLACK)]).unwrap();
            chart.draw_series([said]).unwrap();
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(WHITE).draw().unwrap();
        area.present().unwrap();
    }
}
