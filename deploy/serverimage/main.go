// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command serverimage writes the server's own image as an archive for docker load: bin/sandpit, the certificates of the
// usual authorities and next to nothing else. It needs no Engine and no root, and of the same files it writes the same bytes.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var c contents
	out := flag.String("o", "bin/sandpit-image.tar", "archive to write")
	flag.StringVar(&c.Program, "program", "bin/sandpit", "the server's program, which says for which processor the image is")
	flag.StringVar(&c.Authorities, "ca", "/etc/ssl/certs/ca-certificates.crt", "certificates of the authorities that the server trusts, in PEM")
	flag.StringVar(&c.Version, "version", "dev", "the server's version")
	flag.StringVar(&c.Name, "name", "sandpit:latest", "the image's name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	digest, err := write(ctx, c, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "serverimage:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
	fmt.Printf("%s is %s, %s: docker load -i %[1]s\n", *out, c.Name, digest)
}

// write writes the archive and returns the image's digest. A file of the name is replaced as a whole or not at all.
func write(ctx context.Context, c contents, path string) (digest string, err error) {
	made, remove, err := c.image(ctx)
	if err != nil {
		return "", err
	}
	defer remove()
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	err = made.Write(ctx, w)
	if err == nil {
		err = w.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	return made.Digest, err
}
