//! A browser that a test drives: Chromium, told by its DevTools protocol over two pipes. Keys and the pointer are real
//! input of the browser, so a control that cannot be reached fails its test.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests, which say aloud where they cannot run")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest time that an answer, or a condition, is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A headless Chromium with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    session: Option<String>,
    faults: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// A browser with an empty page of this width and height in pixels; `None`, said aloud, where none is installed.
    pub fn open(width: u32, height: u32) -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let is_installed = |name: &&&str| {
            let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            version.is_ok_and(|status| status.success())
        };
        let Some(name) = names.iter().find(is_installed) else {
            eprintln!("no browser is installed: PAGES ARE NOT TESTED IN A BROWSER. apt-get install chromium");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The browser reads the protocol from descriptor 3 and writes it to descriptor 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh", name])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, reader) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (sender, from) = channel();
        thread::spawn(move || {
            for message in reader.split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self { process, to, from, last: 0, session: None, faults: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser.resize(width, height);
        Some(browser)
    }

    /// Gives the page another size.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Tells the page that its reader prefers `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens an address, and waits until it is read and `ready` holds, an expression of JavaScript.
    pub fn go(&mut self, url: &str, ready: &str) {
        let went = self.call("Page.navigate", json!({ "url": url }));
        assert!(went["errorText"].is_null(), "{url}: {went}");
        let to = serde_json::to_string(url).unwrap();
        self.wait(&format!("location.href.startsWith({to}) && document.readyState === 'complete' && ({ready})"));
    }

    /// Value of an expression of JavaScript on the page; a promise is waited for.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Text that an expression of JavaScript gives.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression}: {value}")).to_owned()
    }

    /// Waits until an expression of JavaScript holds.
    pub fn wait(&mut self, condition: &str) {
        let began = Instant::now();
        // A page that is being left has no context for a moment, and an expression on it fails.
        let asked = json!({ "expression": format!("Boolean({condition})"), "returnByValue": true });
        while self.call("Runtime.evaluate", asked.clone())["result"]["value"] != true {
            assert!(began.elapsed() < PATIENCE, "never true: {condition}; faults: {:?}", self.faults);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses the element that an expression of JavaScript gives, in its middle.
    pub fn click(&mut self, element: &str) {
        let (x, y) = self.point(element, 0.5, 0.5);
        for kind in ["mousePressed", "mouseReleased"] {
            let press = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", press);
        }
    }

    /// Moves the pointer over the element that an expression gives, to these shares of its width and height, and gives
    /// the place on the page. The element must be what lies there.
    pub fn point(&mut self, element: &str, across: f64, down: f64) -> (f64, f64) {
        let place = self.eval(&format!(
            "(() => {{ const element = {element};
               element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const box = element.getBoundingClientRect();
               const x = box.left + box.width * {across}, y = box.top + box.height * {down};
               const hit = document.elementFromPoint(x, y);
               return [x, y, Boolean(hit) && (element.contains(hit) || hit.contains(element))]; }})()"
        ));
        assert_eq!(place[2], true, "{element} is covered or out of reach");
        let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
        (x, y)
    }

    /// Chooses an option by its text from the list that an expression gives, with the arrow keys.
    pub fn choose(&mut self, list: &str, option: &str) {
        let wanted = serde_json::to_string(option).unwrap();
        let steps = self.eval(&format!(
            "(() => {{ const list = {list};
               list.focus();
               return [...list.options].findIndex(option => option.text === {wanted}) - list.selectedIndex; }})()"
        ));
        let steps = steps.as_i64().unwrap();
        let (key, code) = if steps < 0 { ("ArrowUp", 38) } else { ("ArrowDown", 40) };
        for _ in 0..steps.abs() {
            for kind in ["keyDown", "keyUp"] {
                let press = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
                self.call("Input.dispatchKeyEvent", press);
            }
            // A page that draws its controls anew takes the focus away.
            self.eval(&format!("{list}.focus()"));
        }
        assert_eq!(self.text(&format!("{list}.selectedOptions[0].text")), option);
    }

    /// Number of sheets of A4 that the page has on paper.
    pub fn sheets_of_a4(&mut self) -> u64 {
        let size = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true });
        let printed = self.call("Page.printToPDF", size)["data"].clone();
        self.eval(&format!("(atob({printed}).match(/\\/Type\\s*\\/Page[^s]/g) ?? []).length")).as_u64().unwrap()
    }

    /// Fails where a script has failed, or the console has an error, since the browser was opened.
    pub fn assert_no_faults(&mut self) {
        // Events before this answer have been read.
        self.eval("0");
        assert!(self.faults.is_empty(), "{:?}", self.faults);
        assert_eq!(self.eval("document.documentElement.dataset.error ?? null"), Value::Null);
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let is_fault = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => params["type"] == "error",
            "Log.entryAdded" => params["entry"]["level"] == "error",
            _ => false,
        };
        if is_fault {
            self.faults.push(params.to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
