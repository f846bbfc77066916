// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"hash/maphash"
	"log/slog"
	"sync"

	"sandpit.dev/agent/server/buffer"
	"sandpit.dev/agent/server/view"
)

// Options is what a Service works with. All are required.
type Options struct {
	Dir       string        // the directory that stands for "/" in paths
	Workspace func() string // returns where relative paths begin, inside

	View    func(user string, root bool) (view.View, error) // returns whose rights a call has
	Buffers *buffer.Pool

	Go     func(fn func()) // runs fn in a goroutine of its caller's, which waits for it at its end
	Done   <-chan struct{} // closed at that end
	Logger *slog.Logger
}

// Service answers calls on files. It is safe for concurrent use.
type Service struct {
	o       Options
	seeking chan struct{} // held by the one call that searches a tree
	syncer  syncer
	known   accountFiles
	spread  spread
	locks   locks
	writing sync.RWMutex // held to read by who writes small files under their own names
}

// New makes a service. It starts nothing.
func New(o Options) *Service {
	s := &Service{o: o, seeking: make(chan struct{}, 1)}
	s.syncer.o = &s.o
	s.locks.seed = maphash.MakeSeed()
	return s
}

// Hold has no file half written under its own name until release.
func (s *Service) Hold() (release func()) {
	s.writing.Lock()
	return s.writing.Unlock
}

// SyncNow brings the files of uploads that are not on the disk yet there, before it returns.
func (s *Service) SyncNow() { s.syncer.now() }
