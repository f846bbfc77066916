// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Start numbers the starts of a disk. Where machines share disks, an agent on a machine that is cut off may go on while another agent is started on
// the same disk elsewhere. Each agent writes its number to the disk, and exits, with all processes that it started, when it reads a greater one.
type Start struct {
	Number int64 `json:"number"` // greater than those of all starts before
	// Wait delays the agent until one before it must have read the number.
	Wait bool `json:"wait,omitempty"`
}

const (
	startFile  = "start" // in the directory of logs: the number of the last start
	maxStart   = 20      // bytes
	maxNumber  = 1 << 62 // what is greater nobody's start was
	startEvery = 5 * time.Second
	startWait  = 2 * startEvery // twice the period at which an agent reads the number
)

// laterStart is what an agent writes in the place of its public half if the disk has a later start, before the number of that.
const laterStart = "a later start has the disk: "

// errLater says that there is a later start.
type errLater int64

func (e errLater) Error() string { return laterStart + strconv.FormatInt(int64(e), 10) }

// note writes the number to the disk. It returns errLater if the disk has a greater one.
func (s *Start) note(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of logs: %w", err)
	}
	switch last, err := lastStart(dir); {
	case err != nil:
		return err
	case last > s.Number:
		return errLater(last)
	}
	// Who is root inside may have put anything there.
	fresh := dir + "/" + startFile + ".new"
	err := os.RemoveAll(fresh)
	if st, lost := os.Lstat(dir + "/" + startFile); err == nil && lost == nil && st.IsDir() {
		err = os.RemoveAll(dir + "/" + startFile)
	}
	if err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	_, err = f.WriteString(strconv.FormatInt(s.Number, 10))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(fresh, dir+"/"+startFile)
	}
	if err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	if s.Wait { // an agent that is cut off can tell nobody that it has ended
		time.Sleep(startWait)
	}
	return nil
}

// lastStart returns the number that a disk has; 0: it has none that makes sense.
func lastStart(dir string) (int64, error) {
	f, err := os.OpenFile(dir+"/"+startFile, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last start: %w", err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, maxStart)
	n, _ := f.Read(b) // what cannot be read is no number
	number, err := strconv.ParseInt(strings.TrimSpace(string(b[:n])), 10, 64)
	if err != nil || number < 0 || number > maxNumber {
		return 0, nil //nolint:nilerr // who may write there may write anything
	}
	return number, nil
}

// watch calls end when there is a later start, and returns then, or when ctx is done.
func (s *Start) watch(ctx context.Context, dir string, end func()) {
	tick := time.NewTicker(startEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if last, err := lastStart(dir); err == nil && last > s.Number { // while the disk cannot be read, it may be so for a moment
			end()
			return
		}
	}
}
