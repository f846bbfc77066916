// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks

// Sizes of chunks in bytes. On average they have some more than minSize + normalSize.
const (
	minSize    = 128 << 10
	normalSize = 512 << 10
	maxSize    = 2 << 20
)

// A cut is where some bits of a hash of the last 64 bytes are zero: more of them before normalSize than behind it, so that few chunks are
// much smaller or larger (Xia et al., "FastCDC", 2016).
const (
	maskBefore = 0xffff_e000_0000_0000 // 19 bits
	maskBehind = 0xffff_8000_0000_0000 // 17 bits
)

// gear has a random number for each byte. Other numbers would cut elsewhere, and share nothing with what is kept already.
var gear = gears()

func gears() (all [256]uint64) {
	x := uint64(0x9e3779b97f4a7c15)
	for n := range all { // SplitMix64
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		all[n] = z ^ z>>31
	}
	return all
}

// cut returns the length of the first chunk of b; 0: more is needed to know it. At the end of a stream what is left is one.
func cut(b []byte) int {
	if len(b) <= minSize {
		return 0
	}
	var h uint64
	n := minSize - 64 // what is before the window is shifted out
	for ; n < minSize; n++ {
		h = h<<1 + gear[b[n]]
	}
	for end := min(len(b), normalSize); n < end; n++ {
		if h = h<<1 + gear[b[n]]; h&maskBefore == 0 {
			return n + 1
		}
	}
	for end := min(len(b), maxSize); n < end; n++ {
		if h = h<<1 + gear[b[n]]; h&maskBehind == 0 {
			return n + 1
		}
	}
	if len(b) >= maxSize {
		return maxSize
	}
	return 0
}
