// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transfer

import (
	"errors"
	"os"
)

func canName() bool { return false }

// unnamed would create a file that has no name.
func unnamed(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func (m *maker) small(*openDir, string, *entry) error { return errNamed }

func pathOf(f *os.File) string { return f.Name() }

func nameIn(*os.File, string, *os.File) error { return errors.ErrUnsupported }
