// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/sqlstore"
)

// Repair checks a data directory and what its last server left on the host, and mends what is
// wrong if mend is set. Of the checks that it returns, those that passed with Done were mended,
// and those that did not pass are left. It touches only what is the installation's, and cgroups
// of servers that are gone; no disk of a sandbox and no record. What the records ask for is done
// by the next server, as at each start.
//
// It locks the directory while it works. A directory that a server has open is maintained by that
// server, see the janitor of package engine.
func Repair(ctx context.Context, cfg Config, mend bool) []Check {
	host := cfg.Runtimes.host()
	if !mend && os.Geteuid() != 0 && host != nil {
		return nil // other users than root see too little to say what is wrong
	}
	r := &repair{mend: mend}
	r.data(ctx, cfg)
	if len(r.checks) == 0 {
		r.checks = append(r.checks, ok("data", "nothing is wrong with %s, nor with what is left of its last server", cfg.Data))
	}
	if os.Geteuid() == 0 && host != nil {
		found, err := inspectAbandoned(ctx, host, mend)
		r.runtime(host, found, err)
	}
	return r.checks
}

func (r *repair) data(ctx context.Context, cfg Config) {
	if _, err := os.Lstat(cfg.Data); errors.Is(err, fs.ErrNotExist) {
		r.checks = append(r.checks, ok("data", "%s is not there yet: there is nothing to mend", cfg.Data))
		return
	}
	if !r.directory("data", cfg.Data) {
		return // what is in it cannot be trusted
	}
	lock, err := lockData(cfg.Data)
	if fault.Is(err, fault.State) {
		r.checks = append(r.checks, ok("data", "%s; it mends by itself what it finds, once a minute", fault.As(err).Message))
		return
	}
	if err != nil {
		r.checks = append(r.checks, refused("data", Failed, err))
		return
	}
	defer func() { _ = lock.Close() }()

	host := cfg.Runtimes.host()
	namespace, mine, stranded := r.installation(ctx, cfg.Data, host)
	if host != nil {
		for _, d := range host.Private(place(host, cfg.Data, namespace)) {
			r.directory("data/"+d.Name, d.Path)
		}
	}
	for _, name := range secretFiles() {
		r.secret("data/"+name, filepath.Join(cfg.Data, name))
	}
	r.records(ctx, filepath.Join(cfg.Data, dbFile))
	if mine {
		r.runtimes(ctx, cfg, namespace, stranded)
	}
}

// runtimes has each kind look for what is wrong with its part.
func (r *repair) runtimes(ctx context.Context, cfg Config, namespace string, stranded []sandbox.ID) {
	for _, k := range cfg.Runtimes.wanted() {
		why := undueOf(ctx, cfg.Data)
		if host, ok := k.(runtime.HostKind); ok {
			if os.Geteuid() != 0 {
				continue
			}
			undue, err := undueUp(ctx, host, cfg.Data, namespace)
			if err != nil {
				r.checks = append(r.checks, refused("installation", Failed, err))
			}
			for _, id := range stranded {
				if undue == nil {
					undue = make(map[sandbox.ID]string, len(stranded))
				}
				undue[id] = "it runs on the disks of another store than the one that is there"
			}
			why = func(id sandbox.ID) string { return undue[id] }
		}
		found, err := k.Inspect(ctx, place(k, cfg.Data, namespace), why, r.mend)
		r.runtime(k, found, err)
	}
}

// runtime adds a runtime's findings, and why it found no more.
func (r *repair) runtime(k runtime.Kind, found []runtime.Finding, err error) {
	for _, f := range found {
		r.found(k.Name()+"/"+f.Name, f.What, f.Done, f.Err)
	}
	if err != nil {
		r.checks = append(r.checks, refused(k.Name(), Failed, err))
	}
}

// secretFiles are the files of a data directory that are for its owner alone.
func secretFiles() []string {
	return []string{SecretsKeyFile, AdminTokenFile, PreviewKeyFile, AuditKeyFile, IdentityFile, dbFile, dbFile + "-wal", dbFile + "-shm"}
}

// repair collects the findings.
type repair struct {
	mend   bool
	checks []Check
}

// found adds a finding, mended or left.
func (r *repair) found(name, what, done string, err error) {
	switch {
	case err != nil:
		c := refused(name, Failed, err)
		if what != "" {
			c.Detail = what + ": " + c.Detail
		}
		r.checks = append(r.checks, c)
	case done != "":
		r.checks = append(r.checks, Check{Name: name, Status: Passed, Detail: what, Done: done})
	default:
		r.checks = append(r.checks, warning(name, "stop the server, and run `sandpit doctor --repair`", "%s", what))
	}
}

// installation checks whether the pieces of the data directory belong together. If it is a copy,
// the sandboxes under its namespace are another directory's, and are not checked: mine is false.
// stranded are the sandboxes that run on another store.
func (r *repair) installation(ctx context.Context, dir string, host runtime.HostKind) (namespace string, mine bool, stranded []sandbox.ID) {
	const name = "installation"
	p, err := lookAt(ctx, dir, host)
	if p == nil {
		r.checks = append(r.checks, refused(name, Failed, err))
		return "", false, nil
	}
	i, ierr := p.identity(Adopt{})
	if ierr != nil {
		r.checks = append(r.checks, refused(name, Failed, ierr))
		return "", false, nil
	}
	if err != nil {
		return i.Namespace, p.elsewhere() == nil, nil // the records are damaged, which their own check reports
	}
	for _, err := range p.wrong(i, Adopt{}) {
		r.checks = append(r.checks, refused(name, Failed, err))
	}
	if p.elsewhere() != nil {
		return i.Namespace, false, nil
	}
	claim, err := i.claim(ctx)
	if err != nil {
		r.checks = append(r.checks, refused(name, Failed, err))
		return i.Namespace, false, nil
	}
	_ = claim.Close()
	if p.store && os.Geteuid() == 0 {
		have, err := layer.ReadID(ctx, p.layers())
		if err == nil {
			err = layer.Identity(i.ofStore(Adopt{})).Refuse(p.layers(), have)
		}
		if err != nil {
			r.checks = append(r.checks, refused(name, Failed, err))
		}
	}
	stranded, _ = p.stranded(i.Namespace)
	return i.Namespace, true, stranded
}

// records checks that the records are sound, and that their file can shrink.
func (r *repair) records(ctx context.Context, path string) {
	if err := sqlstore.Check(ctx, path); err != nil {
		r.checks = append(r.checks, refused("records", Failed, err))
		return
	}
	old, size, err := sqlstore.Convertible(ctx, path)
	if err != nil || !old {
		if err != nil {
			r.found("records", "", "", err)
		}
		return
	}
	what := fmt.Sprintf("%s (%d MB) was made by an older version and gives no space back", path, size>>20)
	if !r.mend {
		r.found("records", what, "", nil)
		return
	}
	if err := sqlstore.Compact(ctx, path); err != nil {
		r.found("records", what, "", err)
		return
	}
	r.found("records", what, "it was rewritten", nil)
}

// directory makes a directory writable by us only. It is false for one that belongs to somebody
// else: they laid it out, and it is not made ours.
func (r *repair) directory(name, path string) bool {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil:
		r.found(name, "", "", fault.Wrap(fault.Unavailable, err, "%s cannot be looked at", path))
		return false
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return true // its owner chose where it leads; what is there is looked at when it is locked
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		r.found(name, "", "", fault.New(fault.State, "%s is not a directory", path).WithRemedy("move it away"))
		return false
	case int(st.Uid) != os.Geteuid():
		r.found(name, "", "", fault.New(fault.Denied, "%s belongs to user %d, and not to the server's (%d)", path, st.Uid, os.Geteuid()).
			WithRemedy("see whose it is and what is in it; then chown it, or choose another with --data"))
		return false
	case st.Mode&0o022 == 0:
		return true
	}
	return r.mode(name, path, fmt.Sprintf("%s could be written by others (mode %04o); see that nothing in it is theirs", path, st.Mode&0o7777), 0o700)
}

// secret makes a file readable and writable by its owner only.
func (r *repair) secret(name, path string) {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.found(name, "", "", fault.Wrap(fault.Unavailable, err, "%s cannot be looked at", path))
	case st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid():
		r.found(name, "", "", fault.New(fault.Denied, "%s is not a file of the server's user", path).
			WithRemedy("see what it is, and move it away"))
	case st.Mode&0o077 != 0:
		r.mode(name, path, fmt.Sprintf("%s is open to others (mode %04o)", path, st.Mode&0o7777), 0o600)
	}
}

// mode sets the mode of a file of the server's own that is not a link.
func (r *repair) mode(name, path, what string, mode uint32) bool {
	if !r.mend {
		r.found(name, what, "", nil)
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		err = unix.Fchmod(fd, mode)
		_ = unix.Close(fd)
	}
	if err != nil {
		r.found(name, what, "", err)
		return false
	}
	r.found(name, what, fmt.Sprintf("its mode is %04o now", mode), nil)
	return true
}
