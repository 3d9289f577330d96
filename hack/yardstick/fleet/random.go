package main

// random is a small deterministic generator of pseudo-random numbers (SplitMix64). Being our own, it
// yields the same fleet whatever the version of Go.
type random struct{ state uint64 }

// newRandom returns the generator of one numbered stream. Streams are independent of each other, so a
// change in how one file is made leaves all others as they were.
func newRandom(stream uint64) *random {
	const fleetSeed = 0x7461_6762_6f61_7421 // "tagboat!"
	seeder := random{state: fleetSeed ^ (stream * 0xd134_2543_de82_ef95)}
	return &random{state: seeder.next()}
}

func (r *random) next() uint64 {
	r.state += 0x9e37_79b9_7f4a_7c15
	mixed := r.state
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58_476d_1ce4_e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d0_49bb_1331_11eb
	return mixed ^ (mixed >> 31)
}

// below returns a number in [0, limit).
func (r *random) below(limit int) int {
	return int(r.next() % uint64(limit))
}

// between returns a number in [low, high].
func (r *random) between(low, high int) int {
	return low + r.below(high-low+1)
}

// chance is true in the given percentage of calls.
func (r *random) chance(percent int) bool {
	return r.below(100) < percent
}

// hex returns that many lower-case hexadecimal digits.
func (r *random) hex(digits int) string {
	const alphabet = "0123456789abcdef"
	text := make([]byte, digits)
	for i := range text {
		text[i] = alphabet[r.below(len(alphabet))]
	}
	return string(text)
}

// pick returns one of the choices.
func pick[T any](r *random, choices []T) T {
	return choices[r.below(len(choices))]
}

// shuffle puts the items into a random order.
func shuffle[T any](r *random, items []T) {
	for i := len(items) - 1; i > 0; i-- {
		j := r.below(i + 1)
		items[i], items[j] = items[j], items[i]
	}
}
