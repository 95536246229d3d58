//! A sorted map that only grows, and whose code is there once whatever it maps.
//!
//! A judge looks things up by a dozen kinds of keys, and every kind of `BTreeMap` is kilobytes of each download. Here
//! only the comparison of two keys is the kind's own: the order is kept as numbers, in runs that are short to shift.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// The longest run: what an insertion shifts at most.
const LONGEST_RUN: usize = 512;

/// Numbers of entries in the order of their keys, cut into runs of which none is empty.
#[derive(Clone, Debug, Default)]
struct Order(Vec<Vec<usize>>);

/// A place in an order: of an entry, or where one would stand.
#[derive(Clone, Copy, Debug)]
struct Place {
    run: usize,
    at: usize,
}

impl Order {
    /// Where the first entry stands that is not less than what is sought, as `compare` says of the number of an entry.
    #[inline(never)]
    fn seek(&self, compare: &dyn Fn(usize) -> Ordering) -> Place {
        let is_less = |number: &usize| compare(*number) == Ordering::Less;
        let run = self.0.partition_point(|run| run.last().is_some_and(is_less));
        let at = self.0.get(run).map_or(0, |run| run.partition_point(is_less));
        Place { run, at }
    }

    fn number(&self, place: Place) -> Option<usize> {
        self.0.get(place.run)?.get(place.at).copied()
    }

    /// The place after that of an entry.
    fn next(&self, Place { run, at }: Place) -> Place {
        match self.0.get(run) {
            Some(numbers) if at + 1 >= numbers.len() => Place { run: run + 1, at: 0 },
            _ => Place { run, at: at + 1 },
        }
    }

    /// The number just before a place.
    fn before(&self, Place { run, at }: Place) -> Option<usize> {
        match at.checked_sub(1) {
            Some(at) => self.number(Place { run, at }),
            None => self.0.get(run.checked_sub(1)?)?.last().copied(),
        }
    }

    #[inline(never)]
    fn insert(&mut self, place: Place, number: usize) {
        // Above all others there is no run of its own: it goes to the end of the last one.
        let past_end = place.run == self.0.len();
        let run = if past_end { place.run.saturating_sub(1) } else { place.run };
        let Some(numbers) = self.0.get_mut(run) else { return self.0.push(alloc::vec![number]) };
        numbers.insert(if past_end { numbers.len() } else { place.at }, number);
        if numbers.len() > LONGEST_RUN {
            let upper = numbers.split_off(LONGEST_RUN / 2);
            self.0.insert(run + 1, upper);
        }
    }
}

/// A map sorted by its keys. Nothing is ever removed.
#[derive(Clone, Debug)]
pub struct SortedMap<K, V> {
    order: Order,
    entries: Vec<(K, V)>,
}

impl<K, V> SortedMap<K, V> {
    /// The map without entries.
    pub const fn new() -> Self {
        Self { order: Order(Vec::new()), entries: Vec::new() }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every entry, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.from_place(Place { run: 0, at: 0 })
    }

    /// The greatest entry.
    pub fn last(&self) -> Option<(&K, &V)> {
        self.entry(self.order.before(Place { run: self.order.0.len(), at: 0 })?)
    }

    fn entry(&self, number: usize) -> Option<(&K, &V)> {
        self.entries.get(number).map(|(key, value)| (key, value))
    }

    fn from_place(&self, mut place: Place) -> impl Iterator<Item = (&K, &V)> {
        core::iter::from_fn(move || {
            let number = self.order.number(place)?;
            place = self.order.next(place);
            self.entry(number)
        })
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn seek(&self, key: &K) -> Place {
        self.order.seek(&|number| self.entries.get(number).map_or(Ordering::Less, |(known, _)| known.cmp(key)))
    }

    fn find(&self, key: &K) -> Result<usize, Place> {
        let place = self.seek(key);
        let number = self.order.number(place);
        number.filter(|number| self.entries.get(*number).is_some_and(|(known, _)| known == key)).ok_or(place)
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(self.find(key).ok()?).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let number = self.find(key).ok()?;
        self.entries.get_mut(number).map(|(_, value)| value)
    }

    fn append(&mut self, place: Place, key: K, value: V) -> usize {
        let number = self.entries.len();
        self.entries.push((key, value));
        self.order.insert(place, number);
        number
    }

    /// The value of a key, to be changed: `value` where the key is new.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let number = match self.find(&key) {
            Ok(number) => number,
            Err(place) => self.append(place, key, value()),
        };
        &mut self.entries[number].1
    }

    /// Sets the value of a key. Answers the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(number) => self.entries.get_mut(number).map(|(_, known)| core::mem::replace(known, value)),
            Err(place) => {
                self.append(place, key, value);
                None
            }
        }
    }

    /// The greatest entry below a key.
    pub fn before(&self, key: &K) -> Option<(&K, &V)> {
        self.entry(self.order.before(self.seek(key))?)
    }

    /// The entries from a key on, ascending.
    pub fn from(&self, key: &K) -> impl Iterator<Item = (&K, &V)> {
        self.from_place(self.seek(key))
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Equal when the same keys have the same values, in whatever order they came.
impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// xorshift64*, so that keys repeat now and then.
    fn keys(count: u64) -> impl Iterator<Item = u64> {
        let mut state = 39u64;
        (0..count).map(move |_| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % 5_000
        })
    }

    #[test]
    fn it_answers_what_a_tree_answers() {
        let orders: [Vec<u64>; 3] =
            [(0..3_000).chain(keys(6_000)).collect(), keys(9_000).collect(), (0..3_000).rev().collect()];
        for keys in orders {
            let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
            for (value, key) in keys.into_iter().enumerate() {
                assert_eq!(map.insert(key, value), tree.insert(key, value));
            }
            assert!(map.iter().eq(tree.iter()));
            assert_eq!((map.len(), map.last()), (tree.len(), tree.last_key_value()));
            for key in 0..5_001 {
                assert_eq!(map.get(&key), tree.get(&key));
                assert_eq!(map.before(&key), tree.range(..key).next_back());
                assert_eq!(map.from(&key).next(), tree.range(key..).next());
            }
            let twice: SortedMap<_, _> = tree.iter().map(|(key, value)| (*key, *value)).collect();
            assert_eq!(map, twice);
        }
    }

    #[test]
    fn what_is_not_there_is_inserted_once() {
        let mut map = SortedMap::new();
        for key in keys(2_000) {
            *map.get_or_insert_with(key, || 0) += 1;
            *map.get_mut(&key).expect("it was inserted") += 1;
        }
        assert_eq!(map.iter().map(|(_, count)| count).sum::<u64>(), 4_000);
        assert!(map.get_mut(&9_999).is_none());
    }
}
