// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"sandpit.dev/agent/wire"
)

// What sockets hold that no limit of memory counts: the kernel charges a TCP connection to its
// process when it is accepted, and does not charge the queue of a netlink socket at all. Commands that
// hold more are killed, as at their limit of memory.
const (
	// maxTCP is the most TCP sockets there may be, of both versions of IP, including those that
	// no program has accepted. Each takes the kernel some 10 KiB.
	maxTCP = 16_384
	// maxNetlink is the most bytes that may wait in the queues of all netlink sockets.
	maxNetlink = 64 << 20

	// fewSockets is how many of all kinds cannot hold so much.
	fewSockets = 32

	// A look comes so long after the last while there are few, and more, and a command runs. The
	// fastest flood that was measured takes some 600 MB a second.
	socketsEvery     = time.Second
	manySocketsEvery = 250 * time.Millisecond
)

// socketWatch ends the commands of a sandbox whose sockets hold too much. It has one goroutine,
// of the Server's, while there are processes.
type socketWatch struct {
	srv *Server

	mu      sync.Mutex
	running bool
}

// begin watches until there is no process, or the Server is closed.
func (w *socketWatch) begin() {
	if !w.srv.o.BoundSockets {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		w.running = true
		w.srv.work.Go(w.run)
	}
}

func (w *socketWatch) run() {
	timer := time.NewTimer(socketsEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.srv.ctx.Done():
			return
		}
		if w.srv.o.Refresh != nil {
			w.srv.o.Refresh()
		}
		if w.over() {
			return
		}
		detail, pause := excess()
		if detail != "" {
			w.srv.o.Logger.Warn("the commands are ended for what their sockets hold", "detail", detail)
			for _, p := range w.srv.processes() {
				p.kill(wire.CauseOOM, detail)
			}
		}
		timer.Reset(pause)
	}
}

// over reports whether there is no process, and then another begin starts anew.
func (w *socketWatch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.srv.mu.Lock()
	defer w.srv.mu.Unlock()
	w.running = len(w.srv.procs) > 0
	return !w.running
}

// processes returns those that run, or have left something that does.
func (s *Server) processes() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*process, 0, len(s.procs))
	for _, p := range s.procs {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// excess returns what the sockets of this network namespace hold too much of, or "", and the time
// until the next look.
func excess() (detail string, next time.Duration) {
	all, tcp := countSockets("sockstat", "TCP:")
	if all < fewSockets {
		return "", socketsEvery
	}
	_, tcp6 := countSockets("sockstat6", "TCP6:")
	if n := tcp + tcp6; n > maxTCP {
		detail = fmt.Sprintf("%d TCP sockets, at most %d: what they hold is in no limit of memory", n, maxTCP)
	} else if netlinkBytes() > maxNetlink {
		detail = fmt.Sprintf("more than %d MiB wait in netlink sockets: they are in no limit of memory", maxNetlink>>20)
	}
	return detail, manySocketsEvery
}

// countSockets returns how many sockets a list of the namespace has, and of which one line tells;
// 0 where the kernel has none of that version of IP. proc_net(5) has the format.
func countSockets(list, line string) (all, of int) {
	f, err := os.Open("/proc/self/net/" + list)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	var buf [1024]byte
	read, err := f.Read(buf[:])
	if err != nil {
		return 0, 0
	}
	for text := range bytes.Lines(buf[:read]) {
		fields := bytes.Fields(text) // "sockets: used 9", "TCP: inuse 4 orphan 0 …"
		if len(fields) < 3 {
			continue
		}
		n, _ := strconv.Atoi(string(fields[2]))
		switch string(fields[0]) {
		case "sockets:":
			all = n
		case line:
			of = n
		}
	}
	return all, of
}

// netlinkBytes adds up what waits in the netlink sockets of the namespace, until it is too much.
func netlinkBytes() (n int64) {
	f, err := os.Open("/proc/self/net/netlink")
	if err != nil {
		return 0
	}
	defer f.Close()
	var buf [32 << 10]byte // of whole lines, as the kernel returns them
	rest := 0
	for {
		read, err := f.Read(buf[rest:])
		text := buf[:rest+read]
		for {
			line, after, whole := bytes.Cut(text, []byte("\n"))
			if !whole {
				break
			}
			text = after
			fields := bytes.Fields(line) // sk Eth Pid Groups Rmem …
			if len(fields) < 5 {
				continue
			}
			held, _ := strconv.ParseInt(string(fields[4]), 10, 64) // of the heading: none
			if n += max(held, 0); n > maxNetlink {
				return n
			}
		}
		rest = copy(buf[:], text)
		if err != nil || rest == len(buf) {
			return n
		}
	}
}
