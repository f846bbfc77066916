// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// slowly is a clock that goes on by what is slept, and by step.
type slowly struct {
	mu    sync.Mutex
	now   time.Time     // guarded by mu
	slept int           // how often, guarded by mu
	step  time.Duration // for each look, guarded by mu
}

func (s *slowly) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(s.step)
	return s.now
}

func (s *slowly) sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slept++
	s.now = s.now.Add(d)
}

func (s *slowly) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *slowly) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slept
}

// What has carried much gives way to others while they are in use, and to nobody afterwards, nor to what has carried as much.
func TestWhatCarriesMuchGivesWay(t *testing.T) {
	server, agent := net.Pipe()
	a, err := NewAgent(agent)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := NewDialer(func(context.Context) (net.Conn, error) { return server, nil })
	defer d.Close()
	s := &slowly{now: time.Now(), step: time.Nanosecond}
	d.uses.since, d.uses.clock, d.uses.sleep = s.now, s.clock, s.sleep
	both := func() (here, there net.Conn) {
		t.Helper()
		here, err := d.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if there, err = a.Accept(); err != nil {
			t.Fatal(err)
		}
		return here, there
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	send := func(nc net.Conn, n int) {
		t.Helper()
		if _, err := nc.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	large, largeThere := both()
	defer large.Close()
	reading.Go(func() { _, _ = io.Copy(io.Discard, largeThere) })
	send(large, muchMoved)
	if n := s.times(); n != 0 {
		t.Errorf("it waited %d times before it had carried much", n)
	}
	send(large, maxPiece) // itself was in use a moment ago
	if n := s.times(); n != 1 {
		t.Errorf("it waited %d times", n)
	}
	s.pass(usedFor)
	send(large, 10*maxPiece)
	if n := s.times(); n != 1 {
		t.Errorf("alone it waited %d times more", n-1)
	}

	small, smallThere := both()
	defer small.Close()
	send(large, 5*maxPiece)
	if n := s.times(); n != 6 {
		t.Errorf("beside one that begins it waited %d times of 5", n-1)
	}
	s.pass(usedFor)
	reading.Go(func() { _, _ = smallThere.Write([]byte("answer")) })
	if _, err := io.ReadFull(small, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	send(large, 5*maxPiece)
	if n := s.times(); n != 11 {
		t.Errorf("beside one that gets an answer it waited %d times of 5", n-6)
	}
	s.pass(usedFor)
	other, otherThere := both()
	defer other.Close()
	reading.Go(func() { _, _ = io.Copy(io.Discard, otherThere) })
	send(other, muchMoved)
	s.pass(usedFor)
	was := s.times()
	send(other, 5*maxPiece)
	send(large, 5*maxPiece)
	if n := s.times(); n != was {
		t.Errorf("two that carry much waited %d times for each other", n-was)
	}
}
