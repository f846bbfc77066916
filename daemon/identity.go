// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/store/sqlstore"
)

// IdentityFile is the file in the data directory that says which installation it is of.
const IdentityFile = "id.json"

// identity is the content of [IdentityFile]. The records and the store of layers have the
// id, too, so that a piece that is missing or of another installation is noticed.
type identity struct {
	ID string `json:"id"`
	// Was is the id before it was changed, until all pieces have the new one.
	Was string `json:"was,omitempty"`
	// Namespace names what runtimes have on the host outside of the directory.
	Namespace string `json:"namespace"`
	// Path, Device, Inode and Boot are of the directory when a server last started on it:
	// a copy has others.
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Boot   string `json:"boot"`
	// StoreDevice and StoreInode are of the store that sandboxes began on; see [layer.Place].
	StoreDevice uint64 `json:"store_device,omitempty"`
	StoreInode  uint64 `json:"store_inode,omitempty"`
	// Records and Store: they have the id. One that is found without it is another.
	Records bool `json:"records"`
	Store   bool `json:"store"`
}

var (
	validID        = regexp.MustCompile(`^[a-z0-9]{20,40}$`)
	validNamespace = regexp.MustCompile(`^[a-z0-9]{12}$`)
)

func newIdentity() identity {
	id := strings.ToLower(rand.Text())
	return identity{ID: id, Namespace: id[:12]}
}

// readIdentity returns nil if the file does not exist.
func readIdentity(dir string) (*identity, error) {
	path := filepath.Join(dir, IdentityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read", path)
	}
	var i identity
	if err := json.Unmarshal(b, &i); err != nil || !validID.MatchString(i.ID) || !validNamespace.MatchString(i.Namespace) || i.Was != "" && !validID.MatchString(i.Was) {
		return nil, fault.Wrap(fault.Unavailable, err, "%s is damaged: it holds no id of an installation", path).
			WithRemedy("put a backup of it in its place, or move it away: it is made anew from the records")
	}
	return &i, nil
}

func (i identity) write(dir string) error {
	b, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, IdentityFile), append(b, '\n'), 0o600); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// pieces describes a data directory as it was found: what belongs together in it, and what is
// missing.
type pieces struct {
	dir     string
	kind    runtime.HostKind // whose disks are in it; nil: the server has none, and what an earlier one left is not looked at
	file    *identity        // may be nil
	here    identity         // path, devices, inodes and boot as they are now
	records sqlstore.Contents
	store   bool // there is one
}

// lookAt reads what is in a data directory and changes nothing. If its result is not nil, all but
// the records could be read.
func lookAt(ctx context.Context, dir string, k runtime.HostKind) (*pieces, error) {
	p := &pieces{dir: dir, kind: k}
	var err error
	if p.here.Path, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be looked at", dir)
	}
	p.here.Device, p.here.Inode = st.Dev, st.Ino
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the host's boot id cannot be read").WithRemedy("mount /proc")
	}
	p.here.Boot = strings.TrimSpace(string(boot))
	if p.file, err = readIdentity(dir); err != nil {
		return nil, err
	}
	if k != nil {
		if p.store, err = layer.There(p.layers()); err != nil {
			return nil, err
		}
		if p.here.StoreDevice, p.here.StoreInode, err = layer.Place(p.layers()); err != nil {
			return nil, err
		}
	}
	p.records, err = sqlstore.Look(ctx, filepath.Join(dir, dbFile))
	return p, err
}

// layers is the directory of the store.
func (p *pieces) layers() string { return p.kind.Store(place(p.kind, p.dir, "").Dir) }

// Adopt selects the pieces of a data directory that a server accepts as they are, though they are
// missing or another installation's.
type Adopt struct {
	Records bool // those that are there, or new ones
	Store   bool // the one that is there, or a new one
	// Copy: the directory is a copy of another; it becomes an installation of its own. It has no
	// effect if a server has started on the directory before, so that the option may stay.
	Copy bool
}

// identity returns the identity that the directory has, or gets.
func (p *pieces) identity(adopt Adopt) (identity, error) {
	var i identity
	switch {
	case p.file != nil:
		i = *p.file
	case p.records.Made || p.store:
		// Made by an earlier version, or the file is lost.
		i = newIdentity()
		if p.records.ID != "" {
			i.ID, i.Records = p.records.ID, true
			i.Namespace = i.ID[:len(i.Namespace)] // as it was made
		}
		if p.kind == nil {
			break
		}
		var err error
		if i.Namespace, err = p.kind.NamespaceOf(place(p.kind, p.dir, "").Dir); err != nil {
			return i, err
		}
	default:
		i = newIdentity()
	}
	if adopt.Copy && p.displaced() {
		if p.file == nil || p.file.Was == "" || p.elsewhere() != nil { // else such a change ended half way
			was := i.ID
			i = newIdentity()
			i.Was = was
		}
	}
	i.Path, i.Device, i.Inode, i.Boot = p.here.Path, p.here.Device, p.here.Inode, p.here.Boot
	return i, nil
}

// wrong lists what should keep a server from starting, as far as it shows without opening the
// store; see [runtime.Installation] for that.
func (p *pieces) wrong(i identity, adopt Adopt) []error {
	var found []error
	if err := p.elsewhere(); err != nil && !adopt.Copy {
		found = append(found, err)
	}
	known := p.file != nil && p.file.Records
	path := filepath.Join(p.dir, dbFile)
	switch id := p.records.ID; {
	case adopt.Records:
	case !p.records.Made && (known || p.store):
		has := "had records"
		if p.kind != nil {
			has = "has the disks of sandboxes in " + p.layers()
		}
		found = append(found, fault.New(fault.State, "the records are missing: %s is not there or empty, and this installation %s", path, has).
			WithRemedy("put a backup of the records or of the whole data directory in place; to begin new ones, start once with --new-records: the old disks are left alone"))
	case id != "" && id != i.ID && id != i.Was:
		found = append(found, fault.New(fault.State, "the records in %s are of another installation: their id is %s, and this one's %s", path, id, i.ID).
			WithRemedy("put this installation's own records back; to use these all the same, start once with --new-records"))
	case id == "" && known && p.records.Made:
		found = append(found, fault.New(fault.State, "the records in %s are others than this installation had: they have no id", path).
			WithRemedy("put this installation's own records back; to use these all the same, start once with --new-records"))
	}
	if p.kind != nil && !p.store && (p.file != nil && p.file.Store || p.records.Disks) && !adopt.Store {
		found = append(found, layer.Missing(p.layers()))
	}
	if _, err := p.stranded(i.Namespace); err != nil && len(found) == 0 {
		found = append(found, err)
	}
	return found
}

// displaced reports whether no server has started on the directory where it is now.
func (p *pieces) displaced() bool {
	f := p.file
	return f != nil && (f.Device != p.here.Device || f.Inode != p.here.Inode || f.Path != p.here.Path)
}

// elsewhere returns an error if another directory is this installation, or if what runs of it is
// not on the disks in this one.
func (p *pieces) elsewhere() error {
	f := p.file
	if !p.displaced() {
		return nil
	}
	const remedy = "move the one away that is not wanted; to make %s an installation of its own, start once with --new-id"
	here, err := os.Stat(p.dir)
	if err != nil {
		return err
	}
	if there, err := os.Stat(f.Path); err == nil && !os.SameFile(here, there) {
		if other, err := readIdentity(f.Path); err == nil && other != nil && other.ID == f.ID {
			return fault.New(fault.State, "%s and %s are one installation (id %s): one is a copy of the other", p.here.Path, f.Path, f.ID).
				WithRemedy(remedy, p.here.Path)
		}
	}
	if p.kind == nil || f.Boot != p.here.Boot || f.Device == p.here.Device && f.Inode == p.here.Inode {
		return nil // nothing runs, or it is the same directory by another path
	}
	ids, err := p.kind.Groups(f.Namespace)
	if err != nil || len(ids) == 0 {
		return err
	}
	return fault.New(fault.State, "%s is a copy, and %d sandboxes of its installation (id %s) run on disks that are not in it", p.here.Path, len(ids), f.ID).
		WithRemedy("stop them by a server on the original directory, or restart the host if that is gone; to leave them and make %s an installation of its own, start once with --new-id", p.here.Path)
}

// identify finds out which installation a data directory is, and refuses one with pieces that are
// missing or another's. The id is in a file before any piece has it, and a piece is recorded to
// have it once all have, so that an interrupted first start can be continued.
func identify(ctx context.Context, dir string, k runtime.HostKind, adopt Adopt, log *slog.Logger) (identity, error) {
	p, err := lookAt(ctx, dir, k)
	if err != nil {
		return identity{}, err
	}
	i, err := p.identity(adopt)
	if err != nil {
		return i, err
	}
	if found := p.wrong(i, adopt); len(found) > 0 {
		for _, err := range found[1:] {
			log.Error("the data directory is not whole", "error", err)
		}
		return i, found[0]
	}
	if adopt.Records && !p.records.Made && p.store {
		log.Warn("new records are begun: the disks of earlier sandboxes, snapshots and volumes are left alone", "store", p.layers())
	}
	if p.kind != nil && adopt.Store && !p.store && p.records.Disks {
		log.Warn("a new store is begun: the sandboxes, snapshots and volumes in the records have no disks", "store", p.layers())
	}
	if p.file == nil || *p.file != i {
		i.keep(dir, log)
	}
	return i, nil
}

// keep writes the identity. A full disk does not keep the server from starting: what is not kept
// is found out again.
func (i identity) keep(dir string, log *slog.Logger) {
	if err := i.write(dir); err != nil {
		log.Warn("the id of the installation cannot be written; it is tried again with the next start", "error", err)
	}
}

// confirm records that the pieces have the id, including the kind's store if it is identified.
func (i identity) confirm(dir string, k runtime.HostKind, identified bool, log *slog.Logger) {
	next := i
	next.Records, next.Store = true, i.Store || identified
	if k != nil {
		var err error
		if next.StoreDevice, next.StoreInode, err = layer.Place(k.Store(place(k, dir, "").Dir)); err != nil {
			log.Warn("the place of the store cannot be noted", "error", err)
		}
	}
	if next.Records && next.Store {
		next.Was = ""
	}
	if next != i {
		next.keep(dir, log)
	}
}

// claim locks an installation for this process on the whole host, until the lock is closed or the
// process ends: otherwise two copies of a directory that were moved about could both pass for the
// original.
func (i identity) claim(ctx context.Context) (net.Listener, error) {
	const patience, pause = 2 * time.Second, 20 * time.Millisecond // see flock
	for deadline := time.Now().Add(patience); ; {
		l, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@sandpit-"+i.ID)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fault.Wrap(fault.Unavailable, err, "the installation %s cannot be claimed", i.ID)
		}
		if time.Now().After(deadline) {
			return nil, fault.New(fault.State, "the installation %s has a server already, on another directory: one is a copy of the other", i.ID).
				WithRemedy("stop that server; to make this directory an installation of its own, start once with --new-id")
		}
		<-time.After(pause)
	}
}

// ofStore returns what a runtime compares its store with. If the file of the identity is lost
// together with the records, the id is new, and the new records adopt the store.
func (i identity) ofStore(adopt Adopt) runtime.Installation {
	return runtime.Installation{ID: i.ID, Was: i.Was, Known: i.Store, Take: adopt.Store || adopt.Records && !i.Records && !i.Store}
}
