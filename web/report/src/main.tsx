import { render } from "preact";
import { App } from "./app";
import { readHead } from "./data";
import "./style.css";

const place = document.getElementById("app");
if (place) render(<App head={readHead()} />, place);
