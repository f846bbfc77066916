// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The pages that nobody sees first. They are a file of their own, that is read when one of them is opened.
export { Change } from "./pages/change";
export { Beside } from "./parts/frame";
export { Connect } from "./pages/connect";
export { Images } from "./pages/images";
export { Ports } from "./pages/ports";
export { Runs } from "./pages/runs";
export { Skills } from "./pages/skills";
export { Snapshots } from "./pages/snapshots";
export { Templates } from "./pages/templates";
export { Volumes } from "./pages/volumes";
export { Overview } from "./pages/overview";
export { Settings } from "./pages/settings";
