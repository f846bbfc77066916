// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// unpackTo has this program unpack its standard input to a directory, and end.
const unpackTo = "TRANSFER_TEST_UNPACK_TO"

func TestMain(m *testing.M) {
	if to := os.Getenv(unpackTo); to != "" {
		c := &Copy{Most: 1 << 30, Left: func(string, string) {}}
		fmt.Println(c.Unpack(context.Background(), os.Stdin, to))
		os.Exit(1) // it is to be killed before
	}
	os.Exit(m.Run())
}

func TestACopyThatIsKilledLeavesWholeFilesAlone(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	parent, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer parent.Close()
	if f, err := unnamed(parent); err != nil {
		t.Skip("this disk holds no files without a name: ", err)
	} else {
		must(t, f.Close())
	}
	top := filepath.Join(parent.Name(), "out")
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), unpackTo+"="+top)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	w := tar.NewWriter(in)
	d := dir("d")
	must(t, w.WriteHeader(&d))
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "d/small", Mode: 0o644, Size: 4}))
	_, err = io.WriteString(w, "evil")
	must(t, err)
	const size = 16 << 20
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "d/large", Mode: 0o644, Size: size}))
	// Of what is written a pipe and a buffer hold less than a half: it is in the middle of the file.
	_, err = w.Write(make([]byte, size/2))
	must(t, err)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	differ(t, map[string]string{"small": "-rw-r--r-- evil"}, tree(t, top))
}
