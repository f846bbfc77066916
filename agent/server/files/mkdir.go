// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Mkdir answers a mkdir.
func (s *Service) Mkdir(req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	if err := checkMode(req.Mode); err != nil {
		return err
	}
	v.Do(func() { err = s.makeDir(p, req.Parents, req.Mode) })
	return fileFault(v, "mkdir", p, err)
}

// makeDir makes one directory, or with parents all that are missing; then one
// that exists is no error. It runs within Do.
func (s *Service) makeDir(p string, parents bool, mode uint32) error {
	dir, name := split(p)
	if name == "" {
		if parents {
			return s.makeParents(p)
		}
		return unix.EEXIST
	}
	if parents {
		if err := s.makeParents(dir); err != nil {
			return err
		}
	}
	fd, err := s.openDir(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Mkdirat(fd, name, 0o755); err != nil {
		if !errors.Is(err, unix.EEXIST) || !parents {
			return err
		}
		there, err := s.Open(p, unix.O_PATH|unix.O_DIRECTORY) // a link to a directory will do
		if err != nil {
			return unix.EEXIST
		}
		return unix.Close(there)
	}
	if mode == 0 {
		return nil
	}
	made, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(made)
	return unix.Fchmod(made, mode)
}

// makeParents makes every directory of p that is missing. It runs within Do.
func (s *Service) makeParents(p string) error {
	if fd, err := s.openDir(p); err == nil {
		return unix.Close(fd)
	} else if !errors.Is(err, unix.ENOENT) {
		return err
	}
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		part := p[:i]
		if strings.HasSuffix(part, "/") {
			continue
		}
		if err := s.makeOne(part); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) makeOne(p string) error {
	dir, name := split(p)
	if name == "" {
		return nil
	}
	fd, err := s.openDir(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Mkdirat(fd, name, 0o755)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) {
		there, there2 := s.Open(p, unix.O_PATH|unix.O_DIRECTORY)
		if there2 == nil {
			return unix.Close(there)
		}
		if errors.Is(err, unix.EEXIST) {
			return unix.ENOTDIR
		}
	}
	return err
}

// protect refuses to take away what the sandbox cannot do without.
func (s *Service) protect(verb, p string) error {
	switch clean := shown(p); clean {
	case "/", s.o.Workspace():
		return fault.New(fault.Denied, "%s: %s itself has to stay", verb, clean).WithRemedy("name what is in it")
	}
	return nil
}
