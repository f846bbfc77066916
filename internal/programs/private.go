// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Private is a thread in a mount namespace of its own: what it mounts, and what
// the programs mount that it starts, nobody else sees, and it is gone with us
// however we end.
type Private struct {
	jobs chan func()
	done chan struct{}
}

func NewPrivate() (*Private, error) {
	p := &Private{jobs: make(chan func()), done: make(chan struct{})}
	began := make(chan error, 1)
	go p.claim(began)
	if err := <-began; err != nil {
		return nil, fmt.Errorf("no mount namespace: %w", err)
	}
	return p, nil
}

// claim finds a thread, for ever: it ends with the goroutine. That cannot be the
// process's first thread, which never ends, and by which /proc/self shows the process.
func (p *Private) claim(began chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		p.run(began)
		return
	}
	defer runtime.UnlockOSThread()
	another := make(chan error, 1)
	go p.claim(another) // runs on another thread: we hold this one
	began <- <-another
}

func (p *Private) run(began chan<- error) {
	defer close(p.done)
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if began <- err; err != nil {
		return
	}
	for job := range p.jobs {
		job()
	}
}

// Do runs fn on the thread and waits for it.
func (p *Private) Do(fn func() error) error {
	result := make(chan error, 1)
	p.jobs <- func() { result <- fn() }
	return <-result
}

func (p *Private) Close() {
	close(p.jobs)
	<-p.done
}
