// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/disk"
	"sandpit.dev/agent/server/files"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Disk names the directories that are read and filled as one archive. The agent runs as root.
type Disk struct {
	Dirs  []string // absolute
	At    string   // directory that they are below, with nothing mounted in them; "": they are in their places
	Begin func()   // sets owner and mode of those that are empty, and makes the home
}

// maxStill bounds how long processes stand still for a disk that is read.
const maxStill = 15 * time.Minute

func (s *Server) noDisk() error {
	if s.o.Disk != nil {
		return nil
	}
	return fault.New(fault.Unsupported, "the agent was told of no disk that it could read or fill")
}

// readDisk sends the disk, while every process stands still.
func (s *Server) readDisk(ctx context.Context, c *call.Conn) error {
	if err := s.noDisk(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxStill, fault.New(fault.Unavailable, "the disk was not read within %v", maxStill))
	defer cancel()
	_ = c.SetWriteDeadline(time.Now().Add(maxStill)) // who reads no more does not have it stand still for ever
	goOn, err := s.still(ctx)
	if err != nil {
		return err
	}
	defer goOn()
	defer s.files.Hold()()
	if err := c.Send(wire.Reply, struct{}{}); err != nil {
		return err
	}
	out := wire.NewDataWriter(c)
	err = disk.Read(ctx, out, s.o.Disk.At, s.o.Disk.Dirs, files.IsTemp)
	if err == nil {
		err = out.Flush()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return c.Send(wire.Done, struct{}{})
}

// fillDisk takes the disk.
func (s *Server) fillDisk(ctx context.Context, c *call.Conn) error {
	err := s.noDisk()
	if err == nil {
		err = s.emptyDisk(ctx)
	}
	if err == nil {
		s.o.Disk.Begin() // what the archive lacks is as on a disk that is new
		err = disk.Fill(ctx, c.Upload(), s.o.Disk.At, s.o.Disk.Dirs)
	}
	if err != nil {
		return err
	}
	return c.Answer(struct{}{})
}

func (s *Server) emptyDisk(ctx context.Context) error {
	root := view.Plain(view.Identity{Name: "root"})
	for _, path := range s.o.Disk.Dirs {
		dir, err := os.OpenFile(s.o.Disk.At+path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "%s cannot be emptied", path)
		}
		err = files.Empty(ctx, root, dir)
		if err == nil { // as one of a disk that is new
			err = dir.Chown(0, 0)
		}
		_ = dir.Close()
		if err != nil {
			return fault.New(fault.Internal, "%s cannot be emptied: %s", path, message.Of(err))
		}
	}
	return nil
}
