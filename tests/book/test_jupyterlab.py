"""The notebooks in a real JupyterLab, from published summaries: every cell runs, verdicts have their colours,
and study.explore() draws."""

import re
import subprocess
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import lab_in_browser
import pytest

STUDY = "wan_keystone"
COLOURS = "const style = getComputedStyle(arguments[0]); return [style.color, style.backgroundColor]"
DARK = "window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """JupyterLab's address and token."""
    home = tmp_path_factory.mktemp("jupyter")
    checkout = lab_in_browser.copy(tmp_path_factory.mktemp("lab") / "labbook")
    with lab_in_browser.server(checkout, home, LABBOOK_PUBLISHED="1") as found:
        yield found


@pytest.fixture(scope="module")
def opened(running, driver):
    """A study's notebook, open, with all cells run; its code cells."""
    notebook = lab_in_browser.Notebook(driver, *running, f"notebooks/{STUDY}.ipynb")
    yield notebook, notebook.run_all()
    driver.get("about:blank")


def test_it_listens_on_this_machine_alone(running):
    port = urlsplit(running[0]).port
    listening = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], check=True, text=True, capture_output=True).stdout
    assert {line.split()[3] for line in listening.splitlines()} == {f"127.0.0.1:{port}"}


def test_it_answers_nobody_without_its_token(running):
    address, token = running
    url = f"{address}api/kernels"
    with pytest.raises(HTTPError) as refusal:
        urlopen(url, timeout=20)
    assert refusal.value.code == 403
    with urlopen(f"{url}?token={token}", timeout=20) as answer:
        assert token and answer.status == 200


def test_all_cells_run(opened):
    _, cells = opened
    assert lab_in_browser.errors(cells) == []
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


def test_nothing_asks_for_news(opened):
    notebook, _ = opened
    assert notebook.driver.execute_script("return document.body.innerText.includes('Jupyter news')") is False


def test_the_text_has_its_numbers_and_figures(opened):
    notebook, _ = opened
    first = notebook.show("span.labbook-glued").find_element("xpath", "./ancestor::*[contains(@class, 'jp-MarkdownCell')]")
    notebook.wait("return ![...document.querySelectorAll('.labbook-glued')].some(one => !one.shown)")
    values = [one.text for one in first.find_elements("css selector", "span.labbook-glued")]
    assert re.match(r"-?[\d.]+ %", values[0]) and not any("measured yet" in one for one in values), values
    assert "{glue" not in first.text
    notebook.show("div.labbook-glued svg, div.labbook-glued table")


def test_objects_say_what_they_are(opened):
    notebook, _ = opened
    output, = notebook.add("study")["outputs"]
    assert "Study wan_keystone" in "".join(output["data"]["text/plain"])
    assert "<th scope=\"row\">response</th>" in "".join(output["data"]["text/html"])


def test_widgets_choose_and_the_figure_follows(opened):
    notebook, _ = opened
    notebook.add("explorer = study.explore(); explorer")
    in_output = "[...document.querySelectorAll('.jp-Notebook .widget-output')].pop()"
    notebook.wait(f"return {in_output}?.querySelector('.labbook-figure svg') && true")
    assert notebook.driver.execute_script("return document.querySelectorAll('.widget-dropdown').length") >= 4
    notebook.add("explorer.children[0].children[0].value = 'response'")
    notebook.wait(f"return {in_output}?.querySelector('svg')?.getAttribute('aria-label')?.includes('rtt_ms') && true")


def test_verdicts_have_their_colours_in_light_and_dark(opened):
    notebook, _ = opened
    light = notebook.driver.execute_script(COLOURS, notebook.show(".verdict-replicated"))
    notebook.driver.execute_script(DARK)
    notebook.wait("return document.body.dataset.jpThemeLight === 'false'")
    dark = notebook.driver.execute_script(COLOURS, notebook.show(".verdict-replicated"))
    assert light == ["rgb(11, 95, 70)", "rgb(226, 244, 237)"] and dark == ["rgb(143, 224, 194)", "rgb(17, 61, 48)"]
