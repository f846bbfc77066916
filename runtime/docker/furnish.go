// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// An Engine makes the place of a mount where it is missing, as its root's, and wherever a link leads that
// lies there. Here all is looked at before, in a container that never runs, and made as whoever owns the
// directory above; who mounts a volume never follows a link.

// movingRepository is of images that a container is about to be made of. They have the sandbox's id, and
// are no snapshots: see kept.
const movingRepository = "localhost/sandpit/moving"

func (d *Driver) movingTag(id sandbox.ID) string { return d.namespace + "-" + string(id) }

func (d *Driver) movingRef(id sandbox.ID) string { return movingRepository + ":" + d.movingTag(id) }

// furnish returns an image with places for volumes: the one that is given, or one made of it, which
// release lets go of. Directories of volumes that are to be mounted are made, and what no sandbox had before becomes
// the user's.
func (d *Driver) furnish(ctx context.Context, id sandbox.ID, image string, mounts []sandbox.Mount) (_ string, release func(), err error) {
	v, at, done, err := d.visit(ctx, image, mounts)
	if err != nil {
		return "", nil, err
	}
	defer done()
	for n, m := range mounts {
		if at[n] != "" {
			if err := d.hand(ctx, v, m.Volume, at[n]); err != nil {
				return "", nil, err
			}
		}
	}
	if err := v.makeParts(ctx, mounts, at); err != nil {
		return "", nil, err
	}
	var places []directory
	for _, m := range mounts {
		missing, err := v.missing(ctx, "", strings.TrimPrefix(m.Path, "/"))
		if asBlocked(err, new(*mount.Blocked)) {
			return "", nil, blockedAt(m.Path, "no volume can be mounted")
		}
		if err != nil {
			return "", nil, err
		}
		if d.makes(m, missing) {
			places = append(places, missing...)
		}
	}
	if len(places) == 0 {
		return image, func() {}, nil
	}
	if err := v.mkdir(ctx, places); err != nil {
		return "", nil, err
	}
	made, err := d.engine.CommitContainer(ctx, v.container, engineapi.Commit{Repository: movingRepository, Tag: d.movingTag(id), Labels: map[string]string{
		labelServer: d.namespace, labelSnapshot: string(id), labelOf: image, labelSandbox: "", labelPolicy: "", labelRole: "", labelMounts: "",
	}})
	if err != nil {
		return "", nil, err
	}
	return made, func() { d.releaseMoving(ctx, id) }, nil
}

// visit makes a container to look at an image, and into volumes: those of which a directory is to be
// mounted, and those that no sandbox had, are at their paths of at.
func (d *Driver) visit(ctx context.Context, image string, mounts []sandbox.Mount) (v *visit, at []string, done func(), err error) {
	var wholes []engineapi.Mount
	at = make([]string, len(mounts))
	for n, m := range mounts {
		if (m.Sub != "" || d.isFresh(m.Volume)) && !d.makesInside() {
			at[n] = insideVolume(n)
			wholes = append(wholes, engineapi.Mount{Type: "volume", Source: d.engineVolume(m.Volume), Target: at[n], Volume: &engineapi.VolumeOptions{NoCopy: true}})
		}
	}
	container, done, err := d.reader(ctx, image, wholes...)
	return d.visitOf(container), at, done, err
}

func (d *Driver) visitOf(container string) *visit {
	return &visit{d: d, container: container, seen: map[string]fs.FileMode{}}
}

// makeParts makes the directories of volumes that are to be mounted.
func (v *visit) makeParts(ctx context.Context, mounts []sandbox.Mount, at []string) error {
	for n, m := range mounts {
		if m.Sub == "" || v.d.makesInside() {
			continue
		}
		missing, err := v.missing(ctx, at[n], m.Sub)
		if err == nil {
			err = v.mkdir(ctx, missing)
		}
		if err != nil {
			return v.notPart(ctx, m, err)
		}
	}
	return nil
}

// notPart says why a directory of a volume cannot be mounted. An Engine says little of what changes while
// it looks.
func (v *visit) notPart(ctx context.Context, m sandbox.Mount, err error) error {
	switch {
	case asBlocked(err, new(*mount.Blocked)):
		return blockedAt(m.Sub, fmt.Sprintf("no directory of volume %s can be mounted", m.Volume))
	case ctx.Err() != nil:
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the directory %s of volume %s cannot be mounted now: %s", sandbox.Clip(m.Sub, 80), m.Volume, fault.As(err).Message).
		WithRemedy("try again; if a sandbox keeps changing what is on the way to it, stop that first")
}

// makes reports whether the directories that are missing for a mount are to be made here: the Engine makes
// those of its own mounts, as root's.
func (d *Driver) makes(m sandbox.Mount, missing []directory) bool {
	return len(missing) > 0 && (missing[0].uid != 0 || missing[0].gid != 0 || m.Sub != "" && !d.engine.MountsParts())
}

// releaseMoving has the image of which a sandbox's container was made removed with that.
func (d *Driver) releaseMoving(ctx context.Context, id sandbox.ID) {
	work, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	img, err := d.engine.InspectImage(work, d.movingRef(id))
	if err == nil {
		err = d.release(work, img.ID, d.movingRef(id))
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		d.log.Warn("an image that a sandbox was made of is left behind; the next server removes it", "sandbox", id, "error", err)
	}
}

// hand gives a volume that no sandbox had before to the sandbox's user.
func (d *Driver) hand(ctx context.Context, v *visit, id sandbox.ID, at string) error {
	if err := d.handing.lock(ctx); err != nil {
		return err
	}
	defer d.handing.unlock()
	if !d.isFresh(id) {
		return nil
	}
	if err := v.mkdir(ctx, []directory{{at, userID, userID}}); err != nil {
		return err
	}
	return d.unfresh(id)
}

// handNew is hand with Podman, which gives a volume that it mounts in what runs for the first time to whoever owns its place, and
// unpacks an archive beside all volumes but one that is for a volume itself. No command runs yet.
func (i *Instance) handNew(ctx context.Context, mounts []sandbox.Mount) error {
	if !i.d.engine.Podman() {
		return nil
	}
	for n, m := range mounts {
		at := m.Path
		switch {
		case m.Sub != "":
			at = insideVolume(n) // the whole, and it can be written to
		case m.ReadOnly: // the user writes to none; it is given with its next mount
			continue
		}
		if err := i.handOne(ctx, m, at); err != nil {
			return err
		}
	}
	return nil
}

func (i *Instance) handOne(ctx context.Context, m sandbox.Mount, at string) error {
	if err := i.d.handing.lock(ctx); err != nil {
		return err
	}
	defer i.d.handing.unlock()
	if !i.d.isFresh(m.Volume) {
		return nil
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755, Uid: userID, Gid: userID, ModTime: time.Now()})
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := i.d.engine.PutArchive(ctx, i.its(), at, &b); err != nil {
		return err
	}
	return i.d.unfresh(m.Volume)
}

// visit looks at what is in a container that does not run.
type visit struct {
	d         *Driver
	container string
	seen      map[string]fs.FileMode // by path; 0: nothing is there
}

// directory is one that is to be made, or that is to belong to others.
type directory struct {
	path     string // absolute
	uid, gid int
}

// missing returns the directories that are missing on the way to base/path, and base/path, as whoever owns
// the last that is there. What is no directory is a *mount.Blocked.
func (v *visit) missing(ctx context.Context, base, path string) ([]directory, error) {
	var out []directory
	above, at := base, base
	for name := range strings.SplitSeq(path, "/") {
		at += "/" + name
		if len(out) == 0 {
			there, err := v.isDir(ctx, at)
			if err != nil {
				return nil, err
			}
			if there {
				above = at
				continue
			}
		}
		out = append(out, directory{path: at})
	}
	if len(out) == 0 || above == "" { // "/" is root's
		return out, nil
	}
	uid, gid, err := v.ownerOf(ctx, above)
	if err != nil {
		return nil, err
	}
	// An Engine that maps users tells whom the host knows, and takes whom the container knows.
	root, err := v.d.mappedRoot(ctx)
	if err != nil {
		return nil, err
	}
	if uid, gid = uid-root.uid, gid-root.gid; uid < 0 || gid < 0 {
		uid, gid = 0, 0 // nobody of the container's
	}
	for n := range out {
		out[n].uid, out[n].gid = uid, gid
	}
	return out, nil
}

// ownerOf returns whose a directory is. Podman says of each that it is root's: there those below the user's own places are the user's.
func (v *visit) ownerOf(ctx context.Context, path string) (uid, gid int, err error) {
	if !v.d.engine.Podman() {
		return v.d.engine.OwnerOf(ctx, v.container, path)
	}
	for _, dir := range []string{sandbox.Workspace, sandbox.Artifacts, userHome} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return userID, userID, nil
		}
	}
	return 0, 0, nil
}

// isDir reports whether a directory is there, whose own directory is one.
func (v *visit) isDir(ctx context.Context, path string) (bool, error) {
	mode, known := v.seen[path]
	if !known {
		st, err := v.d.engine.StatArchive(ctx, v.container, path)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return false, err
		default:
			mode = st.Mode
		}
		v.seen[path] = mode
	}
	switch {
	case mode == 0:
		return false, nil
	case !mode.IsDir():
		return false, &mount.Blocked{Path: path, Err: errors.New("it is a link or a file")}
	}
	return true, nil
}

// mkdir makes directories, or gives those that are there to others.
func (v *visit) mkdir(ctx context.Context, list []directory) error {
	if len(list) == 0 {
		return nil
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range list {
		if err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir.path, "/") + "/", Mode: 0o755, Uid: dir.uid, Gid: dir.gid, ModTime: time.Now(),
		}); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := v.d.engine.PutArchive(ctx, v.container, "/", &b); err != nil {
		return err
	}
	for _, dir := range list {
		delete(v.seen, dir.path)
	}
	return nil
}

// asBlocked reports whether err is about what is no directory.
func asBlocked(err error, as **mount.Blocked) bool { return errors.As(err, as) }
