"""The page as a reader has it: moved, typed into, listened to, on a phone and in the dark."""

from pathlib import Path

import pytest

import longtail as lt
from longtail.metrics import group_accuracies, recalls
from longtail.posthoc import LogitAdjustment
from report_pages import NAMES, fitted, samples_of

TAU, TARGET = "[data-explorer=tau]", "[data-explorer=target]"


class Opened:
    """A page with everything that it did wrong."""

    def __init__(self, browser, path: Path, **options) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._heard(message))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self._asked(dialog))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def _heard(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, dialog) -> None:
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def unfold(self) -> None:
        for folded in self.page.locator("details:not([open]) summary").all():
            folded.click()

    def numbers(self, explorer: str, cells: str) -> list[float]:
        texts = self.page.locator(f"{explorer} {cells}").all_text_contents()
        return [float(text.replace("−", "-")) for text in texts]


@pytest.fixture(scope="module")
def windows(browser, page_files):
    """Each page in one window of each kind, opened once: opening is what takes time."""
    made: dict[str, Opened] = {}

    def window(name: str = "plain", **options) -> Opened:
        key = f"{name} {options}"
        if key not in made:
            made[key] = Opened(browser, page_files[name], **options)
        return made[key]

    yield window
    for each in made.values():
        each.context.close()


@pytest.fixture
def opened(windows):
    """A window with what was heard so far forgotten."""

    def open_page(name: str = "plain", **options) -> Opened:
        found = windows(name, **options)
        found.errors.clear()
        return found

    return open_page


def at_tau(tau: float) -> tuple[list[float], list[float]]:
    """What the library says of the same scores: the measures of the table, and every class."""
    scores = samples_of().before
    moved = LogitAdjustment(scores.carried, tau)(scores)
    recall = recalls(moved.predict(), scores.labels, scores.num_classes)
    groups = group_accuracies(moved, groups=lt.shot_groups(scores.counts))
    plain = float((moved.predict() == scores.labels).double().mean())
    measures = [float(recall.mean()), plain, groups["many"], groups["medium"], groups["few"]]
    return [100 * share for share in measures], (100 * recall).tolist()


def set_slider(page, selector: str, value: float) -> None:
    page.locator(selector).evaluate(
        "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')) }", value
    )


@pytest.mark.parametrize("name", ["plain", "hostile", "comparison"])
def test_nothing_goes_wrong_and_no_request_leaves_the_page(browser, page_files, name):
    it = Opened(browser, page_files[name])
    it.page.mouse.wheel(0, 5000)
    assert it.errors == []
    assert it.requests == [page_files[name].as_uri()]
    it.context.close()


def test_the_tau_slider_opens_at_the_result_and_a_button_goes_back_to_it(browser, page_files):
    """The τ of the result has more digits than a step of the slider."""
    it = Opened(browser, page_files["fitted"])
    found = fitted()
    order = found.samples.order
    recall = found.recalls["after"][order]
    keys = ("balanced_accuracy", "accuracy", "many", "medium", "few")
    measures = [100 * float(found.shares[k][order] @ recall) for k in keys]
    it.unfold()

    def shows_the_result() -> None:
        assert it.numbers(TAU, "[data-measure]") == pytest.approx(measures, abs=0.00501)
        assert it.numbers(TAU, "[data-class]") == pytest.approx(100 * recall, abs=0.0501)
        assert it.numbers(TAU, "[data-tau-shown]") == [round(found.samples.tau, 3)] * 2

    shows_the_result()
    first = it.page.locator("main table >> nth=0").locator("tbody tr").first.text_content()
    assert f"{measures[0]:.1f}" in first
    for tau in (0.0, 0.871, 0.872, 2.0):
        set_slider(it.page, f"{TAU} input[type=range]", tau)
        samples = found.samples
        log = samples.before.carried.log
        moved = samples.after.logits.numpy() - (tau - samples.tau) * log
        recalled = recalls(moved.argmax(axis=1), samples.labels, samples.num_classes)
        shown = it.numbers(TAU, "[data-class]")
        assert shown == pytest.approx((100 * recalled[order]).tolist(), abs=0.0501)
    it.page.locator(f"{TAU} button", has_text="the result").click()
    shows_the_result()
    assert it.errors == []
    it.context.close()


@pytest.mark.parametrize("tau", [-1.0, -0.337, 0.0, 0.618, 1.0, 1.5, 2.999])
def test_the_tau_slider_moves_the_numbers_to_what_the_library_computes(opened, tau):
    it = opened()
    set_slider(it.page, f"{TAU} input[type=range]", tau)
    measures, classes = at_tau(tau)
    assert it.numbers(TAU, "[data-measure]") == pytest.approx(measures, abs=0.00501)
    assert it.numbers(TAU, "[data-tau-shown]") == [tau, tau]
    it.unfold()
    assert it.numbers(TAU, "[data-class]") == pytest.approx(classes, abs=0.0501)


def test_a_tau_that_is_typed_does_the_same_and_a_wrong_one_nothing(opened):
    it = opened()
    box = it.page.locator(f"{TAU} input[type=number]")
    box.fill("0.25")
    assert it.page.locator(f"{TAU} input[type=range]").input_value() == "0.25"
    assert it.numbers(TAU, "[data-measure]") == pytest.approx(at_tau(0.25)[0], abs=0.00501)
    box.fill("99")
    assert it.numbers(TAU, "[data-measure]") == pytest.approx(at_tau(0.25)[0], abs=0.00501)
    assert it.errors == []


def test_the_keyboard_alone_reaches_and_moves_both_sliders(opened):
    it = opened()
    it.page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(40):
        it.page.keyboard.press("Tab")
        focused = it.page.evaluate("document.activeElement.id")
        seen.add(focused)
        if focused == "tau":
            it.page.keyboard.press("Home")
            assert it.numbers(TAU, "[data-measure]") == pytest.approx(at_tau(-1)[0], abs=0.00501)
            it.page.keyboard.press("ArrowRight")
            assert it.numbers(TAU, "[data-measure]") == pytest.approx(
                at_tau(-0.999)[0], abs=0.00501
            )
        if focused == "target":
            it.page.keyboard.press("Home")
            assert it.page.locator(f"{TARGET} output").text_content() == "as before"
    assert {"tau", "target"} <= seen


def test_a_button_sets_tau(opened):
    it = opened()
    it.page.locator(f"{TAU} button", has_text="τ = 0").click()
    assert it.numbers(TAU, "[data-measure]") == pytest.approx(at_tau(0.0)[0], abs=0.00501)


@pytest.mark.parametrize(("place", "power"), [(0, 1.0), (7, 0.3), (10, 0.0), (20, -1.0)])
def test_the_target_slider_shows_what_evaluate_computes_under_that_prior(opened, place, power):
    it = opened()
    set_slider(it.page, "#target", place)
    scores = samples_of().before
    target = scores.carried.tempered(power)
    found = lt.metrics.evaluate(scores, target=target)
    shown = it.numbers(TARGET, "[data-row=moved] td")
    assert shown[:2] == pytest.approx(
        [100 * found["accuracy_under_target"], 100 * found["ece"]], abs=0.00501
    )
    assert shown[2] == pytest.approx(found["nll"], abs=0.000501)


def test_moving_the_pointer_over_a_class_tells_its_name(opened):
    it = opened()
    plot = it.page.locator(f"{TAU} [data-plot=dots] svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    it.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "class " in it.page.locator(f"{TAU} [data-told]").text_content()


def test_hostile_names_are_shown_as_text(opened):
    it = opened("hostile")
    it.unfold()
    shown = it.page.locator(f"{TAU} details tbody th").all_text_contents()
    assert shown[: len(NAMES)] == list(NAMES)
    assert it.page.locator("img").count() == 0
    assert it.errors == []


@pytest.mark.parametrize("name", ["plain", "hostile", "comparison"])
@pytest.mark.parametrize("width", [320, 400, 1280])
def test_the_page_is_never_wider_than_the_screen(opened, name, width):
    it = opened(name)
    it.page.set_viewport_size({"width": width, "height": 800})
    it.unfold()
    assert it.page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_the_first_table_is_seen_whole(opened):
    it = opened()
    it.page.set_viewport_size({"width": 400, "height": 800})
    assert it.page.locator("main .scroll").first.evaluate("s => s.scrollWidth - s.clientWidth") <= 0


def test_the_first_screen_has_the_table_and_what_to_do_next(opened):
    it = opened()
    it.page.set_viewport_size({"width": 1280, "height": 900})
    it.page.evaluate("window.scrollTo(0, 0)")
    for part in ("h1", ".summary", "main table >> nth=0", ".next"):
        box = it.page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 900, part


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["hostile", "comparison"])
def test_axe_finds_nothing_that_keeps_anyone_out(opened, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    it = opened(name, bypass_csp=True)
    it.page.emulate_media(color_scheme=scheme)
    it.unfold()
    found = axe.run(it.page).response["violations"]
    said = [f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:200]}" for v in found]
    assert said == []


def test_without_scripts_the_page_still_says_everything(opened):
    it = opened(java_script_enabled=False)
    assert it.page.locator(f"{TAU} .controls").is_hidden()
    assert len(it.numbers(TAU, "[data-measure]")) == 5


def test_in_print_the_controls_are_gone_and_the_paper_is_white(opened):
    it = opened()
    it.page.emulate_media(media="print", color_scheme="dark")
    assert it.page.locator(f"{TAU} .controls").is_hidden()
    paper = it.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    it.page.emulate_media(media="screen", color_scheme="light")


def test_what_scrolls_on_a_phone_shows_that_it_does(browser, page_files):
    for name in ("plain", "comparison"):
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.goto(page_files[name].as_uri())
        found = page.evaluate(
            """() => [...document.querySelectorAll(".scroll")]
                 .filter((box) => box.scrollWidth > box.clientWidth + 1)
                 .map((box) => {
                   const style = getComputedStyle(box), figure = box.closest("figure");
                   const said = figure && getComputedStyle(
                     figure.querySelector("figcaption"), "::before").content;
                   return [style.backgroundAttachment, said];
                 })"""
        )
        assert found
        for attachment, said in found:
            assert attachment == "local, local, scroll, scroll"
            assert said is None or "Scroll sideways" in said
        whole = page.evaluate("document.documentElement.scrollWidth")
        assert whole == 400  # marks behind numbers do not widen the page
        page.close()
