// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"archive/tar"
	"encoding/binary"
	"io"
	"math"
	"strconv"
)

// FormatError says what is wrong with an entry: it completes a sentence that begins with the entry.
type FormatError string

func (e FormatError) Error() string { return string(e) }

// Parts reads the parts of an entry, of which nothing is trusted.
type Parts struct {
	Size    int64 // of the file
	content io.Reader
	left    int64 // bytes of the entry
	last    int64 // where the part before ended
}

// Parse returns the parts of an entry whose content is read from content; nil if it has no [Record]. Its error is a [FormatError].
func Parse(h *tar.Header, content io.Reader) (*Parts, error) {
	record, ok := h.PAXRecords[Record]
	if !ok {
		return nil, nil
	}
	size, err := strconv.ParseInt(record, 10, 64)
	if err != nil || size < 0 {
		return nil, FormatError("has holes and no size")
	}
	return &Parts{Size: size, content: content, left: h.Size}, nil
}

// Next returns where the next part is; its data is what content has next, and is read before Next is called again. The error is io.EOF
// if there is no other part, a [FormatError] if it is not within the file and behind the part before, and else that of content.
func (p *Parts) Next() (at, length int64, err error) {
	if p.left == 0 {
		return 0, 0, io.EOF
	}
	if p.left < headSize {
		return 0, 0, io.ErrUnexpectedEOF
	}
	var head [headSize]byte
	if _, err := io.ReadFull(p.content, head[:]); err == io.EOF {
		return 0, 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, 0, err
	}
	p.left -= headSize
	from, n := binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:])
	if from > math.MaxInt64 || n > math.MaxInt64 || int64(from) < p.last || int64(n) > p.left || int64(n) > p.Size-int64(from) { //nolint:gosec // as asked before
		return 0, 0, FormatError("has parts that do not fit together")
	}
	at, length = int64(from), int64(n) //nolint:gosec // as above
	p.left -= length
	p.last = at + length
	return at, length, nil
}
