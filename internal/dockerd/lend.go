// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Image is an image that an Engine has without a copy of its files.
type Image struct {
	Root   string   // directory with its files
	Names  []string // REPOSITORY:TAG each; at least one
	Labels map[string]string
}

// Lend makes an image of one empty layer, and has a directory stand in for that layer, read-only. To load the files
// would take the Engine as long as they are many, a minute for one GiB: it writes them twice. Containers of
// the image, and what is committed of them, are as of one that was loaded; what is saved of it lacks the layer.
//
// Where the Engine maps users, the files' owners are mapped alike. The mount is gone with the Engine; one that is started again over the same data is lent the image once more.
func (e *Engine) Lend(ctx context.Context, img Image) error {
	if len(img.Names) == 0 {
		return errors.New("an image that is lent has no name")
	}
	upper, err := e.layer(ctx, img.Names[0])
	if err != nil {
		return err
	}
	if upper == "" {
		if err := e.addEmpty(ctx, img); err != nil {
			return err
		}
		if upper, err = e.layer(ctx, img.Names[0]); err != nil {
			return err
		}
	}
	if upper == "" {
		return fmt.Errorf("the Engine does not say where it keeps the layer of %s: overlay is the only driver of layers that is known here", img.Names[0])
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if e.mapped {
		users, err := mappingOf()
		if err != nil {
			return err
		}
		defer func() { _ = users.Close() }()
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	return e.Do(func() error {
		if e.cleans {
			if upper, err = elsewhere(upper); err != nil {
				return err
			}
		}
		return standIn(img.Root, upper, &attr)
	})
}

// elsewhere makes a layer's directory a link to one outside of the Engine's data, and returns that. What cleans up after Podman's last container
// that runs takes away all mounts in the data.
func elsewhere(upper string) (string, error) {
	dir := lentDir + "/" + filepath.Base(filepath.Dir(upper))
	err := os.MkdirAll(dir, 0o755)
	if st, missing := os.Lstat(upper); missing == nil && st.IsDir() {
		err = errors.Join(err, os.Remove(upper), os.Symlink(dir, upper))
	}
	return dir, err
}

// lentDir is in the Engine's own /run.
const lentDir = "/run/lent"

// standIn mounts a directory over another.
func standIn(dir, over string, attr *unix.MountAttr) (err error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clone the mount of %s: %w", dir, err)
	}
	m := os.NewFile(uintptr(fd), dir)
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
		return fmt.Errorf("set how %s is mounted: %w", dir, err)
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, over, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s as a layer: %w", dir, err)
	}
	return nil
}

// addEmpty has the Engine make an image of an empty layer.
func (e *Engine) addEmpty(ctx context.Context, img Image) error {
	var empty bytes.Buffer
	t := tar.NewWriter(&empty)
	if err := errors.Join(t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}), t.Close()); err != nil {
		return err
	}
	query := url.Values{"fromSrc": {"-"}, "repo": {img.Names[0]}}
	for name, value := range img.Labels {
		query.Add("changes", "LABEL "+name+"="+value)
	}
	if err := e.ask(ctx, http.MethodPost, "/images/create?"+query.Encode(), &empty, nil); err != nil {
		return err
	}
	for _, name := range img.Names[1:] {
		repository, tag := name, ""
		if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
			repository, tag = name[:at], name[at+1:]
		}
		if err := e.ask(ctx, http.MethodPost, "/images/"+img.Names[0]+"/tag?"+url.Values{"repo": {repository}, "tag": {tag}}.Encode(), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// layer returns the directory of an image's only layer; "": there is no such image, or it is not kept so.
func (e *Engine) layer(ctx context.Context, name string) (string, error) {
	var image struct {
		RootFS      struct{ Layers []string }
		GraphDriver struct {
			Name string
			Data struct{ UpperDir string }
		}
	}
	err := e.ask(ctx, http.MethodGet, "/images/"+name+"/json", nil, &image)
	if errors.Is(err, errNoSuch) {
		return "", nil
	}
	if err != nil || len(image.RootFS.Layers) != 1 || !strings.HasPrefix(image.GraphDriver.Name, "overlay") {
		return "", err
	}
	return image.GraphDriver.Data.UpperDir, nil
}

var errNoSuch = errors.New("the Engine has no such thing")

// ask sends a request, and reads the answer into out, unless that is nil.
func (e *Engine) ask(ctx context.Context, method, path string, body io.Reader, out any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-tar")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.Socket)
	}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w: %s", method, path, errNoSuch, bytes.TrimSpace(b))
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(b))
	case out == nil:
		return nil
	}
	return json.Unmarshal(b, out)
}
