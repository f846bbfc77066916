// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	idLetters = "abcdefghijklmnopqrstuvwxyz0123456789"
	idLen     = 16
)

// UUID returns a sandbox's id as a UUID of version 8: the id is a number in base 36, and the number is the UUID's free
// bits. The first ones are 0, since an id has fewer.
func UUID(id sandbox.ID) string {
	var hi, lo uint64
	for i := range len(id) {
		carry, low := bits.Mul64(lo, uint64(len(idLetters)))
		low, over := bits.Add64(low, uint64(strings.IndexByte(idLetters, id[i])), 0)
		hi, lo = hi*uint64(len(idLetters))+carry+over, low
	}
	// 48 bits, the version, 12 bits, the variant, 62 bits.
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi>>10<<16|8<<12|(hi<<2|lo>>62)&0xfff)
	binary.BigEndian.PutUint64(b[8:], 0b10<<62|lo<<2>>2)
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// refOf returns what the engine calls a sandbox that a path names: the id that a UUID stands for, or an id or a key as it
// is. A UUID that stands for none is fault.NotFound.
func refOf(name string) (string, error) {
	h := strings.ReplaceAll(strings.ToLower(name), "-", "")
	b, err := hex.DecodeString(h)
	if err != nil || len(b) != 16 || len(name) != 36 {
		return name, nil
	}
	high, low := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	hi, lo := high>>16<<10|high&0xfff>>2, low<<2>>2|high<<62
	var id [idLen]byte
	for i := idLen - 1; i >= 0; i-- {
		var digit uint64
		hi, digit = hi/uint64(len(idLetters)), hi%uint64(len(idLetters))
		lo, digit = bits.Div64(digit, lo, uint64(len(idLetters)))
		id[i] = idLetters[digit]
	}
	if s := sandbox.ID(id[:]); hi|lo == 0 && sandbox.ValidID(string(s)) && UUID(s) == strings.ToLower(name) {
		return string(s), nil
	}
	return "", fault.New(fault.NotFound, "there is no sandbox %s", name).WithRemedy("list the sandboxes to see which there are")
}
