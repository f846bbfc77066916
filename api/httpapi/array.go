// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
)

// Array is an answer that is a JSON array of which only its last element says how long it is.
// It is collected in pieces, so that none has to be copied into a larger one.
type Array struct {
	c     *Call
	full  [][]byte
	last  []byte
	size  int64
	most  int64
	asked bool
}

// Array returns an empty array of at most most bytes of JSON.
func (c *Call) Array(most int64) *Array { return &Array{c: c, most: most} }

// ErrFull is what [Array.Add] returns where an element has no room.
var ErrFull = errors.New("the array is full")

// Add encodes one more element.
func (a *Array) Add(ctx context.Context, element any) (err error) {
	wrong := Encode(element, func(text []byte) { err = a.put(ctx, bytes.TrimSuffix(text, []byte{'\n'})) })
	return cmp.Or(wrong, err)
}

// AddText adds an element that is JSON already.
func (a *Array) AddText(ctx context.Context, text []byte) error { return a.put(ctx, text) }

func (a *Array) put(ctx context.Context, text []byte) error {
	if !a.asked && a.size+int64(len(text)) > FreeAnswer {
		a.asked = true
		got, err := a.c.Room.Take(ctx, a.most)
		if err != nil {
			return err
		}
		a.most = got
	}
	if a.size+int64(len(text))+2 > a.most {
		return ErrFull
	}
	if len(a.last)+len(text)+1 > cap(a.last) {
		if len(a.last) > 0 {
			a.full = append(a.full, a.last)
		}
		a.last = make([]byte, 0, max(len(text)+1, min(answerPiece, 512+4*cap(a.last))))
	}
	if a.size > 0 {
		a.last = append(a.last, ',')
	}
	a.last = append(a.last, text...)
	a.size += int64(len(text)) + 1
	return nil
}

// Answer sends the array. What was taken and is not needed goes back first.
func (a *Array) Answer() {
	if a.asked {
		a.c.Room.Give(a.most - a.size)
	}
	size := int64(len("[]\n")) + max(0, a.size-1)
	a.c.begin(size)
	w := a.c.paced(size)
	defer w.Close()
	pieces := append(a.full, a.last, []byte("]\n"))
	for i, piece := range append([][]byte{{'['}}, pieces...) {
		if i > 0 {
			pieces[i-1] = nil
		}
		if _, err := w.Write(piece); err != nil {
			return // the client went away
		}
	}
}
