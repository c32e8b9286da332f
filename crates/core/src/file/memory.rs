//! How much memory the process may have, and has, as the operating system says.

use std::path::{Component, Path};

/// What bounds the memory of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// In bytes.
    pub bytes: u64,
    /// Whether it is that of a control group, and not the machine's.
    pub of_group: bool,
}

/// The machine's memory, or that of the smallest of the memory groups around this process if that is less; None where
/// the operating system does not say.
pub fn memory_limit() -> Option<MemoryLimit> {
    limit_as_told(&|path| std::fs::read_to_string(path).ok())
}

/// Bytes of this process that are in memory: what is anonymous, and files that it maps.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status, "VmRSS:")
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What a file of the kernel's says.
type Told<'a> = &'a dyn Fn(&Path) -> Option<String>;

fn limit_as_told(told: Told) -> Option<MemoryLimit> {
    let machine = told(Path::new("/proc/meminfo")).and_then(|text| kilobytes(&text, "MemTotal:"));
    let groups = told(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let group = groups.lines().filter_map(|line| limit_of_group(told, line)).min();
    match (machine, group) {
        (machine, Some(bytes)) if machine.is_none_or(|machine| bytes < machine) => {
            Some(MemoryLimit { bytes, of_group: true })
        }
        (machine, _) => machine.map(|bytes| MemoryLimit { bytes, of_group: false }),
    }
}

/// The least limit of a group and those around it; a line is `number:controllers:path`, of version 2 without
/// controllers. In a container the group may be seen as the root, or by a path that is not there.
fn limit_of_group(told: Told, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (home, file) = match controllers {
        "" => (Path::new("/sys/fs/cgroup"), "memory.max"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let inner = Path::new(path.trim_start_matches('/'));
    // A path upwards would leave the place of groups.
    let is_plain = inner.components().all(|part| matches!(part, Component::Normal(_)));
    let group = if is_plain { home.join(inner) } else { home.to_path_buf() };
    debug_assert!(group.starts_with(home), "a group outside of all groups");
    let around = group.ancestors().take_while(|group| group.starts_with(home));
    around.filter_map(|group| told(&group.join(file))?.trim().parse::<u64>().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(files: &[(&str, &str)]) -> Option<(u64, bool)> {
        let told = |path: &Path| {
            let (_, text) = files.iter().find(|(name, _)| Path::new(name) == path)?;
            Some(text.to_string())
        };
        limit_as_told(&told).map(|limit| (limit.bytes, limit.of_group))
    }

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal:        1000 kB\nMemFree: 5 kB\n");

    #[test]
    fn the_least_limit_counts() {
        let v2 = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[MACHINE]), Some((1_024_000, false)));
        assert_eq!(limit(&[MACHINE, v2]), Some((1_024_000, false)));
        let inner = ("/sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(&[MACHINE, v2, inner]), Some((1_024_000, false)));
        let outer = ("/sys/fs/cgroup/a/memory.max", "4096\n");
        assert_eq!(limit(&[MACHINE, v2, inner, outer]), Some((4096, true)));
        let large = ("/sys/fs/cgroup/a/memory.max", "99999999999\n");
        assert_eq!(limit(&[MACHINE, v2, large]), Some((1_024_000, false)));
        // A container sees its own group as the root.
        let own = ("/sys/fs/cgroup/memory.max", "8192");
        assert_eq!(limit(&[MACHINE, ("/proc/self/cgroup", "0::/../x\n"), own]), Some((8192, true)));
    }

    #[test]
    fn groups_of_version_1_count() {
        let groups = ("/proc/self/cgroup", "5:cpu:/c\n4:hugetlb,memory:/m\nnonsense\n");
        let inner = ("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n");
        let outer = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(&[MACHINE, groups, inner, outer]), Some((8192, true)));
        assert_eq!(limit(&[groups, inner]), Some((8192, true)));
    }

    #[test]
    fn this_process_has_some_memory_and_may_have_more() {
        let (limit, resident) = (memory_limit().unwrap(), resident_bytes().unwrap());
        assert!(resident > 1 << 20 && limit.bytes > resident / 2, "{limit:?} {resident}");
    }
}
