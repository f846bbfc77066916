// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"sandpit.dev/cmd/sandpit/internal/output"
)

// Show writes what programs wrote: as it is, or to a terminal so that it does not obey it.
func Show(w io.Writer, r io.Reader) error {
	if _, tty := Of(w); !tty {
		_, err := io.Copy(w, r)
		return err
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			fmt.Fprintln(w, output.Printable(strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")))
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
