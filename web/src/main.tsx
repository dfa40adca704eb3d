// SPDX-License-Identifier: Apache-2.0
import "@xyflow/react/dist/style.css";
import "./style/tokens.css";
import "./style/studio.css";
import "./style/desk.css";
import "./style/displays.css";
import { createRoot } from "react-dom/client";
import { App } from "./App";

createRoot(document.getElementById("root")!).render(<App />);
