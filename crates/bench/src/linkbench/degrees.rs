//! How many links a node has: the distribution that was observed in Facebook's graph and published with LinkBench, here
//! with fewer points and straight lines between them.

/// Number of links, and the percentage of nodes that have at most so many.
#[rustfmt::skip]
const OBSERVED: &[(u64, f64)] = &[
    (0, 19.747449203), (1, 72.984623367), (2, 86.737518500), (3, 91.816809223), (4, 94.459130331), (5, 95.868614610),
    (6, 96.777775082), (7, 97.379272246), (8, 97.816738302), (9, 98.114715395), (10, 98.340988367), (11, 98.524690517),
    (12, 98.674630888), (13, 98.790193594), (14, 98.887764948), (15, 98.963388346), (16, 99.032703574), (17, 99.088487961),
    (18, 99.139438573), (19, 99.182252017), (20, 99.222098008), (24, 99.344062201), (28, 99.430864873), (32, 99.494469152),
    (40, 99.586161590), (48, 99.641255438), (56, 99.679440402), (64, 99.705830206), (80, 99.743343293), (100, 99.773521732),
    (128, 99.801721869), (160, 99.820609056), (200, 99.839794854), (256, 99.857562247), (320, 99.874340488), (400, 99.887908655),
    (512, 99.900786282), (640, 99.912077485), (740, 99.918665654), (1235, 99.941640087), (1300, 99.943730369), (1500, 99.948956072),
    (1700, 99.953771185), (1900, 99.957709126), (2098, 99.961983005), (2499, 99.967600637), (3001, 99.973567574), (3390, 99.976988240),
    (3999, 99.981710037), (5000, 99.986805098), (5996, 99.990376975), (7006, 99.992422460), (7979, 99.993878461), (8971, 99.995054245),
    (9998, 99.995931416), (12109, 99.997275169), (14000, 99.998152340), (15979, 99.998637584), (18200, 99.998861543),
    (21007, 99.999197481), (25213, 99.999458766), (30010, 99.999589409), (34762, 99.999738715), (39556, 99.999757378),
    (50105, 99.999850694), (61582, 99.999925347), (73919, 99.999944010), (124441, 99.999962674), (186879, 99.999981337),
    (311_772, 100.0),
];

/// The number of links of the node with rank `rank` of `nodes`, where rank 0 has the most.
///
/// Of the share of the distribution that a rank stands for, the middle counts, so that small graphs have the same mean
/// as large ones (LinkBench takes the upper end, by which the first node always has 311,772 links).
pub fn links_of_rank(rank: u64, nodes: u64) -> u64 {
    let percent = 100.0 * (1.0 - (rank as f64 + 0.5) / nodes as f64);
    let at = OBSERVED.partition_point(|(_, share)| *share < percent).min(OBSERVED.len() - 1);
    let (links, share) = OBSERVED[at];
    if at == 0 {
        return links;
    }
    let (fewer, less) = OBSERVED[at - 1];
    let way = (percent - less) / (share - less);
    // Numbers that follow each other have nothing in between: the larger one.
    fewer + ((way * (links - fewer) as f64).ceil() as u64).clamp(1, links - fewer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_published_ones() {
        let nodes = 200_000;
        let degrees: Vec<u64> = (0..nodes).map(|rank| links_of_rank(rank, nodes)).collect();
        assert!(degrees.windows(2).all(|pair| pair[0] >= pair[1]), "rank 0 has the most");
        for (links, percent) in
            [(0, 19.747), (1, 72.985), (2, 86.738), (10, 98.341), (100, 99.7735), (1500, 99.94896)]
        {
            let found =
                degrees.iter().filter(|degree| **degree <= links).count() as f64 * 100.0 / nodes as f64;
            assert!((found - percent).abs() < 0.002, "{links}: {found} for {percent}");
        }
    }

    #[test]
    fn the_mean_is_the_published_one() {
        // "Loaded 47423071 links (4.74 links per node)", says LinkBench's documentation of a graph with 10 million
        // nodes.
        let nodes = 1_000_000;
        let mean = (0..nodes).map(|rank| links_of_rank(rank, nodes)).sum::<u64>() as f64 / nodes as f64;
        assert!((mean / 4.74 - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn one_node_is_possible() {
        assert_eq!(links_of_rank(0, 1), 1);
    }
}
